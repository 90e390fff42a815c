package main

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/notification"
)

func onStage(t *testing.T, do func(ctx context.Context, st *stage) error) error {
	t.Helper()
	st := &stage{}
	return st.withServers(t.Context(), options{Dir: t.TempDir(), NoSync: true}, io.Discard, func() error {
		return do(t.Context(), st)
	})
}

func execute(t *testing.T, db *database, sql string, args ...any) {
	t.Helper()
	_, err := db.Exec(context.WithoutCancel(t.Context()), sql, args...)
	require.NoError(t, err, sql)
}

// A benchmark that counted undone work would flatter the variant that did least.
func TestCheckNoticesWhatABenchmarkMustNotOverlook(t *testing.T) {
	t.Parallel()
	r := newRecords(600, 48, time.Now())
	require.NoError(t, onStage(t, func(ctx context.Context, st *stage) error {
		b := newInbox(st, inboxPlans[true])
		if err := b.prepare(ctx); err != nil {
			return err
		}
		return st.withCopy(ctx, inboxTemplate, func(db *database) error {
			execute(t, db, domainSQL+byHandInbox)
			for i, n := range r.numbers {
				if e := r.event(i); n == i {
					execute(t, db, insertEffectSQL, e.ID, n, email(n))
					execute(t, db, insertByHand, inboxConsumer, e.ID)
				}
			}
			require.NoError(t, r.check(ctx, db, inboxVariants[0]))
			for spoil, complaint := range map[string]string{
				`delete from effect where number = 7`: "effects:",
				`insert into effect (event_id, number, email) select event_id, number, email from effect limit 1`: "effects:",
				`update effect set event_id = (select min(event_id) from effect), number = 0 where number = 7`:    "with an effect",
				`update effect set position = default where number < 48`:                                          "out of order",
				`delete from by_hand_inbox where event_id = (select min(event_id) from by_hand_inbox)`:            "ids remembered",
				`insert into inbox_owner (consumer, topic, partition, owner) values ('bench', 't', 0, 'o')`:       "left: 1",
				`update effect set number = number + 48 where number = (select max(number) from effect)`:          "sum of",
			} {
				spoiled := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, spoil)
					require.NoError(t, err, spoil)
					return r.check(ctx, tx, inboxVariants[0])
				})
				require.ErrorContains(t, spoiled, complaint, spoil)
			}
			return nil
		})
	}))
}

func TestSignupsAreCounted(t *testing.T) {
	t.Parallel()
	require.NoError(t, onStage(t, func(ctx context.Context, st *stage) error {
		if err := newRelay(st, relayPlans[true]).prepare(ctx); err != nil {
			return err
		}
		b := &relayBench{stage: st}
		for _, open := range []opener{newOurs, stockPolling(0)} {
			err := b.with(ctx, open, func(db *database, v variant) error {
				require.NoError(t, corpus{topic: "t"}.signup(1).store(ctx, db.Pool, v))
				require.NoError(t, corpus{topic: "t"}.signup(1).store(ctx, db.Pool, v), "the same answer again")
				require.NoError(t, checkStored(ctx, db, v, 1))
				execute(t, db, "delete from "+v.table())
				require.ErrorContains(t, checkStored(ctx, db, v, 1), "0 rows in "+v.table())
				return nil
			})
			require.NoError(t, err)
		}
		return nil
	}))
}

func TestCountFindsWhatIsMissingAndWhatIsThereTwice(t *testing.T) {
	t.Parallel()
	require.NoError(t, onStage(t, func(ctx context.Context, st *stage) error {
		b := &pathBench{stage: st}
		if err := newPath(st, pathPlans[true]).prepare(ctx); err != nil {
			return err
		}
		return b.withSite(ctx, func(at site) error {
			sign := func(n int) {
				user := corpus{}.event(n).Key
				execute(t, at.customer, insertUserSQL, user, user, user, "Ada", "pending_verification", occurredAt)
				require.NoError(t, pgx.BeginFunc(ctx, at.notification, func(tx pgx.Tx) error {
					return notification.UserEvents().Apply(ctx, tx, event.Event{
						ID: "event of " + user, Type: contract.UserRegistered.Type, Key: user, Version: 1,
						Data: []byte(`{"user_id":"` + user + `","email":"ada@example.org","name":"Ada"}`),
					})
				}))
			}
			sign(1)
			sign(2)
			require.NoError(t, at.countEffects(ctx))
			for _, damage := range []struct{ do, undo, says string }{
				{
					"update mail set user_id = gen_random_uuid() where user_id = $1",
					"update mail set user_id = $1 where user_id not in (select user_id from contact)", "in mail",
				},
				{
					"insert into mail (id, event_id, template, user_id, recipient) " +
						"select gen_random_uuid(), 'another', template, user_id, recipient from mail where user_id = $1",
					"delete from mail where event_id = 'another' and user_id = $1", "3 rows of other users in mail",
				},
				{
					"update mail set event_id = (select min(event_id) from mail), recipient = 'other' where user_id = $1",
					"update mail set event_id = 'event of ' || $1::text where user_id = $1::uuid", "mails of 1 events",
				},
			} {
				user := corpus{}.event(2).Key
				execute(t, at.notification, damage.do, user)
				require.ErrorContains(t, at.countEffects(ctx), damage.says)
				execute(t, at.notification, damage.undo, user)
				require.NoError(t, at.countEffects(ctx))
			}
			return nil
		})
	}))
}
