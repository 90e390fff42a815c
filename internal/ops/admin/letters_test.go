package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

const fileLetters = `
insert into public.dead_letter (consumer, event_id, event_type, key, headers, payload, topic, partition, record_offset,
    class, code, error, attempts, first_failed_at, state, outcome, settled_at)
select $1, coalesce(nullif($2, ''), $4 || n), 't.v1', 'k', '[]', convert_to(n::text, 'UTF8'), 'topic', 3, 40 + n, $3,
    $4, 'e', 1, clock_timestamp(), $5, $6, case $5 when 'waiting' then null else clock_timestamp() end
from generate_series(1, $7) n`

type filed struct {
	consumer, event, class, code, state, outcome string
	n                                            int
}

func (b *bundle) file(t *testing.T, letters ...filed) {
	t.Helper()
	for _, l := range letters {
		b.exec(t, fileLetters, l.consumer, l.event, l.class, l.code, l.state, l.outcome, l.n)
	}
}

func TestInboxStatsOfEachConsumer(t *testing.T) {
	t.Parallel()
	b := setup(t, withConsumers(admin.Consumer{Name: "a"}, admin.Consumer{Name: "b"}),
		func(cfg *admin.Config, _ *http.Server) {
			cfg.Metrics = measured(t, func(gauge func(name string, value float64, labels ...string)) {
				for partition, records := range map[string]float64{"0": 7, "1": 0, "2": 4} {
					gauge("kafka_consumer_lag_records", records, "consumer", "a", "partition", partition)
					gauge("kafka_consumer_lag_seconds", records*1.5, "consumer", "a", "partition", partition)
				}
				gauge("inbox_messages_total", 5, "consumer", "a", "outcome", "applied")
				gauge("inbox_messages_total", 2, "consumer", "a", "outcome", "stale")
				gauge("inbox_messages_total", 9, "consumer", "gone", "outcome", "applied")
				gauge("other_total", 100, "consumer", "a", "outcome", "applied")
				gauge("dead_letters_waiting", 3, "consumer", "a", "state", "dead")
				gauge("dead_letters_waiting", 4, "consumer", "a", "state", "parked")
			})
		})
	require.Equal(t, []adminapi.ConsumerStats{
		{
			Consumer: "a", Outcomes: map[string]int64{"applied": 5, "stale": 2}, Dead: new(int64(3)), Parked: new(int64(4)),
			LagRecords: new(int64(11)), LagSeconds: new(10.5),
		},
		{Consumer: "b", Outcomes: map[string]int64{}},
	}, read[adminapi.InboxStats](t, b, "inbox/stats").Items)
}

func TestTheHistoryOfAType(t *testing.T) {
	t.Parallel()
	b := setup(t, withConsumers(admin.Consumer{Name: "a"}, admin.Consumer{Name: "b"}))
	b.file(t, filed{"a", "dead", "permanent", "c", "waiting", "", 1})
	b.exec(t, `insert into public.inbox (consumer, event_id, event_time, event_type, payload_hash,
		processed_at, metadata) select c, 'e-' || n, '1970-01-01', 't.v1', '\x01', now() - n * interval '1 hour',
		'{"topic":"topic","partition":1,"offset":7,"processing_time_ms":4}'
		from generate_series(1, 3) n cross join (values ('a'), ('b'), ('gone')) v (c)`)
	history := func(query adminapi.HistoryQuery) (events []string, out adminapi.InboxHistory) {
		query.Type = "t"
		out = read[adminapi.InboxHistory](t, b, "inbox/history", query)
		for _, e := range out.Items {
			events = append(events, e.Consumer+" "+e.EventID)
		}
		return events, out
	}
	events, out := history(adminapi.HistoryQuery{Consumer: "b", Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	require.Equal(t, []string{"b e-1", "b e-2", "b e-3"}, events)
	require.False(t, out.More)
	require.Nil(t, out.Unread)
	require.Equal(t, []any{"applied", "topic", int32(1), int64(7), int64(4)}, []any{
		out.Items[0].Outcome, out.Items[0].Topic, out.Items[0].Partition, out.Items[0].Offset, *out.Items[0].ProcessingTimeMs,
	})
	events, out = history(adminapi.HistoryQuery{Limit: 3})
	require.Equal(t, []string{"a e-1", "b e-1", "a e-2"}, events)
	require.True(t, out.More)
	for kind, n := range map[string]int{"t.v1": 1, "t": 1, "v1": 0} {
		require.Len(t, read[adminapi.DeadLetters](t, b, "dead-letters/query", map[string]string{"type": kind}).Items, n, kind)
	}
}

func TestALookupReadsItsOwnLetters(t *testing.T) {
	t.Parallel()
	var session *pgxpool.Pool // of one connection, whose statistics are reported when it is asked to
	b := setup(t, func(cfg *admin.Config, _ *http.Server) {
		one := cfg.Pool.Config()
		one.MaxConns = 1
		var err error
		session, err = pgxpool.NewWithConfig(context.Background(), one)
		require.NoError(t, err)
		t.Cleanup(session.Close)
		cfg.Pool, cfg.Consumers = session, []admin.Consumer{{Name: "a"}, {Name: "b"}}
	})
	b.file(t, filed{"a", "", "permanent", "c", "waiting", "", 1000}, filed{"b", "e", "permanent", "c", "waiting", "", 1})
	readRows := func() (n int) {
		_, err := session.Exec(t.Context(), `select pg_stat_force_next_flush()`)
		require.NoError(t, err)
		require.NoError(t, b.pool.QueryRow(t.Context(), `select seq_tup_read + coalesce(idx_tup_fetch, 0)
			from pg_stat_user_tables where relname = 'dead_letter'`).Scan(&n))
		return n
	}
	before := readRows()
	for range 3 {
		found := read[adminapi.InboxEvents](t, b, "inbox/events", adminapi.LookupQuery{EventID: "e"})
		require.Equal(t, "b", found.Items[0].Consumer)
	}
	require.Less(t, readRows()-before, 100)
}

func TestLookupHasTheRowAndTheDeadLetters(t *testing.T) {
	t.Parallel()
	b := setup(t, withConsumers(admin.Consumer{Name: "a"}))
	b.file(t, filed{"a", "e1", "permanent", "id_conflict", "waiting", "", 1})
	b.file(t, filed{"a", "e2", "permanent", "c", "replayed", "applied", 1})
	outcomes := func(event, payload string) (list []string) {
		b.exec(t, `insert into public.inbox (consumer, event_id, event_time, event_type,
			payload_hash, metadata) values ('a', $1, '1970-01-01', 't.v1', sha256($2::bytea),
			'{"processing_time_ms":3,"caller":{"mail":"m"}}')`, event, []byte(payload))
		for _, e := range read[adminapi.InboxEvents](t, b, "inbox/events", adminapi.LookupQuery{EventID: event}).Items {
			list = append(list, fmt.Sprint(e.Outcome, " ", e.DeadLetter != 0, " ", string(e.Metadata)))
			if e.DeadLetter == 0 {
				require.EqualValues(t, 3, *e.ProcessingTimeMs)
				continue
			}
			require.Equal(t, []any{"a", "t.v1", "topic", int32(3), int64(41)},
				[]any{e.Consumer, e.Type, e.Topic, e.Partition, e.Offset})
		}
		return list
	}
	require.Equal(t, []string{`applied false {"mail":"m"}`, "waiting, id_conflict true "}, outcomes("e1", "another"))
	require.Equal(t, []string{`applied false {"mail":"m"}`, "replayed, applied true "}, outcomes("e2", "1"))
}

func TestHeadersKeepTheirBytes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file(t, filed{"a", "", "permanent", "c", "waiting", "", 1})
	b.exec(t, `update public.dead_letter set payload = '',
		headers = '[["\ufffd", "AQ==", "/w=="], ["x", null], ["x", ""]]'`) // as the first edition wrote them
	show := func() adminapi.DeadLetter {
		asked := adminapi.DeadLetterRequest{ID: 1, Payload: true}
		return read[adminapi.DeadLetterDetail](t, b, "dead-letters/show", asked).Letter
	}
	require.Equal(t, []adminapi.Header{
		{Name: "\ufffd", Value: []byte{1}}, {Name: "x", Value: []byte{}}, {Name: "x", Value: []byte{}},
	}, show().Headers)
	require.Equal(t, []byte{}, show().Payload)

	status, body := b.change(t, "dead-letters/edit", false, `,"id":1,"headers":[{"name":"\ufffd","value":"Ag=="}]`)
	require.Equal(t, 200, status, string(body))
	rows, _ := b.pool.Query(t.Context(), `select `+deadletter.Columns+` from dead_letter order by id`)
	letters, err := pgx.CollectRows(rows, deadletter.Scan)
	require.NoError(t, err)
	headers, _ := letters[0].Current()
	require.Equal(t, []deadletter.Header{
		{Name: "x", Value: []byte{}}, {Name: "x", Value: []byte{}}, {Name: "\ufffd", Value: []byte{2}},
	}, headers)

	again := func(editedAt string) (status int, answer string) {
		status, body := b.change(t, "dead-letters/edit", false, `,"id":1,"payload":"e30=","edited_at":"`+editedAt+`"`)
		return status, string(body)
	}
	status, refused := again("2026-01-02T03:04:05Z")
	require.Equal(t, 409, status)
	require.Contains(t, refused, "edited_since")
	editedAt := show().EditedAt.Format(time.RFC3339Nano)
	require.Contains(t, refused, editedAt)
	status, refused = again(editedAt)
	require.Equal(t, 200, status, refused)
}

func TestTheAuditOfADeadLetter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `
		insert into public.operator_action (operator, verb, kind, subject) values ('ada', 'discard', 'dead_letter', '17')`)
	for want, asked := range map[int][]adminapi.AuditQuery{
		1: {{Subject: "test/17"}, {Subject: "test/17", Kind: "dead_letter"}, {Subject: "17", Kind: "dead_letter"}},
		0: {{Subject: "other/17"}, {Subject: "test/17", Kind: "mail"}},
	} {
		for _, one := range asked {
			require.Len(t, read[adminapi.Actions](t, b, "audit", one).Items, want, "%+v", one)
		}
	}
}
