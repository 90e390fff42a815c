// Package upgrade tests that a database of the first edition serves after migrate. The dumps in testdata have
// unfinished work of every kind.
package upgrade

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Parked keys wait for their release.
func TestTheOutboxOfTheFirstEditionIsPublished(t *testing.T) {
	t.Parallel()
	for service, sets := range map[string][]migrations.Set{
		"customer": migrations.ForCustomer(), "notification": migrations.ForNotification(),
	} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			pool := restore(t, service)
			_, err := migrations.Apply(t.Context(), pgtest.DSN(pool), sets...)
			require.NoError(t, err)
			o, wire := startRelay(t, pool)

			requirePublished(t, pool, o, wire, `not exists (select from outbox_parked p
				where p.permanent and p.topic = o.topic and p.key = o.key)`)
			require.Zero(t, number(t, pool, `select count(*) from outbox o join outbox_parked p using (topic, key)
				where o.event_id not in (select event_id from fixture_sent)
				and not exists (select from outbox_held h where h.position = o.position)`), "all of a parked key is held")
			require.Zero(t, number(t, pool, `select count(*) from outbox_scheduled where due_at < now()`))

			_, err = pool.Exec(t.Context(), `update outbox_parked set retry_at = clock_timestamp()`)
			require.NoError(t, err)
			requirePublished(t, pool, o, wire, `true`)
			require.Zero(t, number(t, pool, `select count(*) from outbox_parked`))
			require.Zero(t, number(t, pool, `select count(*) from outbox_held`))
		})
	}
}

func TestAGivenIDOfTheFirstEditionIsKnown(t *testing.T) {
	t.Parallel()
	pool := restore(t, "customer")
	_, err := migrations.Apply(t.Context(), pgtest.DSN(pool), migrations.ForCustomer()...)
	require.NoError(t, err)
	rows, err := pool.Query(t.Context(), `select g.content, g.event_id::text, o.source, o.event_type, o.topic, o.key,
		o.data_schema, o.occurred_at, o.payload from outbox_given_id g join outbox o using (event_id)`)
	require.NoError(t, err)
	contents := map[string][]byte{}
	given, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e event.Event, err error) {
		var content []byte
		defer func() { contents[e.ID] = content }()
		return e, row.Scan(&content, &e.ID, &e.Source, &e.Type, &e.Topic, &e.Key, &e.DataSchema, &e.Time, &e.Data)
	})
	require.NoError(t, err)
	require.Len(t, given, 2)
	for _, e := range given {
		content := contentOf(e)
		if contract.TopicPrefix == "" {
			require.Equal(t, content, contents[e.ID])
		}
		// A renamed tree has renamed the dump's events, and cannot rename a hash.
		_, err = pool.Exec(t.Context(), `update outbox_given_id set content = $2 where event_id = $1`, e.ID, content)
		require.NoError(t, err)
	}
	before := number(t, pool, `select count(*) from outbox`)
	outboxtest.Commit(t, outboxtest.New(t), pool, given...)
	require.Equal(t, before, number(t, pool, `select count(*) from outbox`))
}

// The first edition stored this hash of an event without a version.
func contentOf(e event.Event) []byte {
	h := sha256.New()
	for _, part := range []string{e.Source, e.Type, e.Topic, e.Key, "0", string(e.Data)} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// The dead letters replace the inbox's rows of events that were not applied.
func TestTheStatesOfTheFirstEditionStay(t *testing.T) {
	t.Parallel()
	for service, sets := range map[string][]migrations.Set{
		"customer": migrations.ForCustomer(), "notification": migrations.ForNotification(),
	} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			pool := restore(t, service)
			const keys = `select consumer, key, version from %s where version > 0`
			before, versions := states(t, pool, service), text(t, pool, fmt.Sprintf(keys, "inbox_watermark"))
			require.Contains(t, before["dead letters"], "discarded")
			require.Contains(t, before["dead letters"], "version_gap")
			_, err := migrations.Apply(t.Context(), pgtest.DSN(pool), sets...)
			require.NoError(t, err)
			require.Equal(t, before, states(t, pool, service))
			require.Equal(t, versions, text(t, pool, fmt.Sprintf(keys, "inbox_key")))
			require.Zero(t, number(t, pool, `select count(*) from inbox i join dead_letter d using (consumer, event_id)
				where d.state <> 'replayed' and d.remembered`))
		})
	}
}

func states(t *testing.T, pool *pgxpool.Pool, service string) map[string]string {
	t.Helper()
	queries := map[string]string{
		"dead letters": `select id, consumer, event_id, key, version, headers, payload, edited_payload, edited_by, class,
			code, attempts, state, holds, remembered, replays, outcome, settled_at from dead_letter`,
		"inbox": `select consumer, event_id, event_time, payload_hash, metadata ->> 'outcome' from inbox
			where metadata ->> 'outcome' in ('applied', 'stale')`,
		"pauses": `select consumer, paused_by, reason, since from inbox_pause`,
		"audit":  `select id, operator, verb, reason, kind, subject, before, after from operator_action`,
		"keys":   `select topic, key, version from outbox_key`,
	}
	if service == "customer" {
		queries["users"] = `select id, email, name, status, registered_at from users`
		queries["answers"] = `select scope, key, fingerprint, status, body from idempotency_key`
		queries["profiles"] = `select user_id, email, name, status, version from profile`
	} else {
		queries["contacts"] = `select user_id, email, name, verified, version from contact`
		queries["mails"] = `select id, event_id, template, user_id, recipient from mail`
		queries["leases"] = `select handler, event_id, state, attempts, doubts, due_at, token, error, ended_at from lease`
	}
	found := map[string]string{}
	for name, query := range queries {
		found[name] = text(t, pool, query)
	}
	return found
}

func text(t *testing.T, pool *pgxpool.Pool, query string) (rows string) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(),
		`select coalesce(string_agg(r::text, e'\n' order by r::text), '') from (`+query+`) r`).Scan(&rows), query)
	return rows
}

// settleSQL makes a restored database look like one upgraded in place: transaction ids are above all ids in the dump,
// whose transactions have ended.
const settleSQL = `
do $$
declare
    newest xid8 := (select xid from public.outbox order by xid desc limit 1);
begin
    update public.outbox_cursor set sysid = (select system_identifier from pg_control_system());
    while pg_current_xact_id() <= newest loop
        commit;
    end loop;
end $$`

func restore(t *testing.T, service string) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.New(t)
	load(t, pgtest.DSN(pool), service)
	_, err := pool.Exec(t.Context(), settleSQL)
	require.NoError(t, err)
	return pool
}

// The dump changes the settings of its session.
func load(t *testing.T, dsn, service string) {
	t.Helper()
	dump, err := os.ReadFile("testdata/first_" + service + ".sql")
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), string(dump))
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}

type sent struct {
	Topic, Key, ID string
	Version        int64
}

type wire struct {
	mu   sync.Mutex
	sent []sent
}

func (w *wire) Publish(topic string, msgs ...*message.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range msgs {
		version, err := strconv.ParseInt(m.Metadata[event.HeaderVersion], 10, 64)
		if err != nil {
			return err
		}
		w.sent = append(w.sent, sent{topic, m.Metadata[event.KeyMetadata], m.UUID, version})
	}
	return nil
}

func (*wire) Close() error { return nil }

func (w *wire) events() []sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

func startRelay(t *testing.T, pool *pgxpool.Pool) (*outbox.Outbox, *wire) {
	t.Helper()
	o, broker := outboxtest.New(t), &wire{}
	r, err := relay.New(relay.Config{
		Connect: outboxtest.Dial(t, pool), Publisher: broker, Scheduled: o, BatchSize: 4, Name: "test",
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			require.NoError(t, err)
		}
	})
	return o, broker
}

// The relay sends the last event after all others, so a surplus event fails the test.
func requirePublished(
	t *testing.T, pool *pgxpool.Pool, o *outbox.Outbox, broker *wire, condition string,
) {
	t.Helper()
	testkit.Until(t, func() bool {
		return len(broker.events()) >= len(unsent(t, pool, condition)) &&
			number(t, pool, `select count(*) from outbox_scheduled where due_at < now()`) == 0
	}, "events are lost")
	last := outboxtest.Commit(t, o, pool, outboxtest.Event("last"))
	testkit.Until(t, func() bool {
		events := broker.events()
		return events[len(events)-1].ID == last[0].ID
	}, "the last event")
	versions := map[[2]string][]int64{}
	for _, e := range broker.events() {
		versions[[2]string{e.Topic, e.Key}] = append(versions[[2]string{e.Topic, e.Key}], e.Version)
	}
	want := map[[2]string][]int64{}
	for _, e := range unsent(t, pool, condition) {
		want[[2]string{e.Topic, e.Key}] = append(want[[2]string{e.Topic, e.Key}], e.Version)
	}
	require.Equal(t, want, versions)
}

// unsent leaves out discarded rows, which nobody sends.
func unsent(t *testing.T, pool *pgxpool.Pool, condition string) []sent {
	t.Helper()
	rows, err := pool.Query(t.Context(), `select topic, key, event_id::text, version from outbox o
		where event_id not in (select event_id from fixture_sent)
		and position not in (select position from outbox_discarded) and `+condition+` order by topic, key, version`)
	require.NoError(t, err)
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sent])
	require.NoError(t, err)
	return entries
}

func number(t *testing.T, pool *pgxpool.Pool, sql string) int64 {
	t.Helper()
	var n int64
	require.NoError(t, pool.QueryRow(t.Context(), sql).Scan(&n))
	return n
}
