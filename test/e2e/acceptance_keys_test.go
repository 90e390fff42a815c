//go:build faults

package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func deliveredToTwo(t *testing.T) {
	db := pgtest.New(t, append(migrations.ForCustomer(), migrations.Lease)...)
	e := life(t, "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b")[1]
	handling, release, calls := make(chan struct{}, 2), make(chan struct{}), make(chan inbox.Outcome, 2)
	mux := customer.ProfileEvents()
	deliver := func(t *testing.T, pool *pgxpool.Pool) {
		t.Helper()
		b := inboxtest.On(pool)
		b.Config.Consumer, b.Config.Accepts, b.Config.Order = "customer.profile", mux.Accepts, inbox.Strict
		b.Host.OnOutcome = func(_ event.Event, outcome inbox.Outcome) { calls <- outcome }
		in := b.Inbox(t)
		copied := e.Copy()
		copied.SetContext(context.WithoutCancel(t.Context()))
		go func() {
			_, _ = in.Middleware(func(msg *message.Message) ([]*message.Message, error) {
				handling <- struct{}{}
				<-release
				return mux.HandleMessage(msg)
			})(copied)
		}()
	}
	deliver(t, db)
	<-handling
	deliver(t, db)
	testkit.Until(t, func() bool {
		return count(t, db, `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`) == 1
	}, "the second one waits for the first one's end")
	close(release)
	require.ElementsMatch(t, []inbox.Outcome{inbox.Applied, inbox.Duplicate}, []inbox.Outcome{<-calls, <-calls})
	require.Empty(t, handling, "one handler ran")
	require.Equal(t, 1, count(t, db, `select count(*) from profile`))

	execute(t, db, `insert into lease (handler, event_id) values ('test', 'e1')`)
	claims := make(chan int, 2)
	for range cap(claims) {
		worker, err := lease.New(lease.Config{Handler: "test", Pool: db, Settings: lease.DefaultSettings()})
		require.NoError(t, err)
		go func() {
			got, err := worker.Claim(context.WithoutCancel(t.Context()))
			if err != nil {
				t.Error(err)
			}
			if got == nil {
				claims <- 0
			} else {
				claims <- 1
			}
		}()
	}
	require.Equal(t, 1, <-claims+<-claims, "one claim succeeds")
}

// lookAlikes returns ids that differ only in case, blanks, Unicode form, escapes, patterns or after a long prefix.
func lookAlikes() []string {
	long := strings.Repeat("x", 254)
	return []string{
		"abc", "ABC", "Abc", "abc ", " abc", "a bc", "a  bc", "a\u00a0bc", "abc\u200b", "\ufeffabc",
		"a/b", "a/./b", "a//b", "a%2Fb", `a\b`, `a\\b`, "a.b", "a-b", "a_b", "a%b", "a*b", "a?b", "a:b", "a|b", "a,b", "a;b",
		"'abc'", `"abc"`, "{abc}", "[abc]", "$1", "null", "NULL", "0", "00", "0.0", "-0", "1e1", "10",
		"caf\u00e9", "cafe\u0301", "CAF\u00c9", "\u212b", "\u00c5", "A\u030a", "\ufb01x", "fix", "\u0131", "i", "I", "\u0130",
		"stra\u00dfe", "strasse", "\u0430bc", "\u1e9b\u0323", "\u1e69", "\U0001f600", "\u202eabc",
		long + "a", long + "A", long + "b", long,
	}
}

// Each name is a separate id and key in the outbox, the inbox, the leases and for repeated requests.
func keysThatLookAlike(t *testing.T) {
	names := lookAlikes()
	db := pgtest.New(t, migrations.Outbox, migrations.Inbox, migrations.Lease, migrations.Audit)
	execute(t, db, `create table ledger (n bigint generated always as identity, event_id text)`)
	out, err := outbox.New(outbox.Config{})
	require.NoError(t, err)
	b := inboxtest.On(db)
	b.Config.Order = inbox.Strict
	mux := inbox.NewMux()
	inbox.Handle(mux, inboxtest.Event, inboxtest.Effect)
	b.Config.Accepts = mux.Accepts
	outcomes := map[inbox.Outcome]int{}
	b.Host.OnOutcome = func(_ event.Event, outcome inbox.Outcome) { outcomes[outcome]++ }
	in := b.Inbox(t)
	var messages []*message.Message
	require.NoError(t, pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		for _, name := range names {
			e := inboxtest.Named("", name) // the outbox makes ids itself, or takes UUIDs
			e.Topic = "topic-1"
			added, err := out.Add(t.Context(), tx, e)
			if err != nil {
				return err
			}
			require.EqualValues(t, 1, added[0].Version, "%q is a key of its own", name)
			if _, err := tx.Exec(t.Context(), lease.Intent, "test", name); err != nil {
				return err
			}
			e.ID, e.Version = name, added[0].Version
			messages = append(messages, e.Message())
		}
		return nil
	}))
	for range 2 {
		for _, msg := range messages {
			msg = msg.Copy()
			msg.SetContext(t.Context())
			require.NoError(t, inboxtest.Deliver(in, mux, msg))
		}
	}
	require.Equal(t, map[inbox.Outcome]int{inbox.Applied: len(names), inbox.Duplicate: len(names)}, outcomes)
	for _, sql := range []string{
		`select count(distinct event_id) from ledger`, `select count(*) from ledger`, `select count(*) from inbox`,
		`select count(*) from inbox_key`, `select count(*) from lease`, `select count(distinct key) from outbox`,
	} {
		require.Equal(t, len(names), count(t, db, sql), sql)
	}
	requestKeysThatLookAlike(t)
}

func requestKeysThatLookAlike(t *testing.T) {
	t.Helper()
	h := newStack(t)
	h.start(t, customerService)
	person := h.client()
	keys := []string{`"k1"`, `"K1"`, `"k1 "`, `" k1"`, `"k 1"`, `"k%31"`, `"k/1"`}
	for range 2 {
		for i, key := range keys {
			address := strings.Repeat("a", i+1)
			person.insist(t, http.StatusCreated, http.MethodPost, "/v1/signups",
				`{"email":"`+address+`@example.org","name":"Ada"}`, map[string]string{"Idempotency-Key": key})
		}
	}
	require.Equal(t, len(keys), count(t, h.customerDB, `select count(*) from users`))
}

func idsOf(records []*sarama.ConsumerMessage) (ids []string) {
	for _, record := range records {
		ids = append(ids, headersIn(record)[event.HeaderID])
	}
	return ids
}
