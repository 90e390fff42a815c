package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/notification"
)

func TestCountFindsWhatIsMissingAndWhatIsThereTwice(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st, err := openStage(ctx, options{Dir: t.TempDir()}.stage(streams{err: new(bytes.Buffer)}, false))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.close()) })
	b := &pathBench{stage: st}
	require.NoError(t, b.prepare(ctx))
	require.ErrorContains(t, st.kafka.claim(ctx, contract.TopicUsers), "exists", "an existing topic is not emptied")
	var cfg lineConfig
	cfg.customer, err = st.copyOf(ctx, customerTemplate)
	require.NoError(t, err)
	cfg.notification, err = st.copyOf(ctx, notificationTemplate)
	require.NoError(t, err)

	sign := func(user string) {
		execute(t, cfg.customer, insertUserSQL, user, user, user, "Ada", "pending_verification", occurredAt)
		require.NoError(t, pgx.BeginFunc(ctx, cfg.notification, func(tx pgx.Tx) error {
			return notification.UserEvents().Apply(ctx, tx, event.Event{
				ID: "event of " + user, Type: contract.UserRegistered.Type, Key: user, Version: 1,
				Data: []byte(`{"user_id":"` + user + `","email":"ada@example.org","name":"Ada"}`),
			})
		}))
	}
	sign(eventID(1))
	sign(eventID(2))
	require.NoError(t, verifyEffects(ctx, cfg))

	for name, damage := range map[string]struct{ do, undo, says string }{
		"a mail is missing": {
			"update mail set user_id = gen_random_uuid() where user_id = $1",
			"update mail set user_id = $1 where user_id not in (select user_id from contact)", "in mail",
		},
		"a mail is there twice": {
			"insert into mail (id, event_id, template, user_id, recipient) " +
				"select gen_random_uuid(), 'another', template, user_id, recipient from mail where user_id = $1",
			"delete from mail where event_id = 'another' and user_id = $1", "3 rows of 2 users in mail",
		},
		"two mails of one event": {
			"update mail set event_id = (select min(event_id) from mail), recipient = 'other' where user_id = $1",
			"update mail set event_id = 'event of ' || $1::text where user_id = $1::uuid", "mails of 1 events",
		},
	} {
		execute(t, cfg.notification, damage.do, eventID(2))
		require.ErrorContains(t, verifyEffects(ctx, cfg), damage.says, name)
		execute(t, cfg.notification, damage.undo, eventID(2))
		require.NoError(t, verifyEffects(ctx, cfg), name)
	}
}

func execute(t *testing.T, db *database, sql string, args ...any) {
	t.Helper()
	_, err := db.Exec(context.WithoutCancel(t.Context()), sql, args...)
	require.NoError(t, err, sql)
}
