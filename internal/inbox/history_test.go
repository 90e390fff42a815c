package inbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
)

const insertApplied = `
insert into public.inbox (consumer, event_id, event_time, event_type, payload_hash, processed_at, metadata)
select $1, $3, coalesce($4::timestamptz, '1970-01-01Z'), $2, '\x01', $5, '{"processing_time_ms":7}'`

// With a nil at the row has no time.
func apply(t *testing.T, pool *pgxpool.Pool, consumer, eventType, id string, at *time.Time, processed time.Time) {
	t.Helper()
	_, err := pool.Exec(t.Context(), insertApplied, consumer, eventType, id, at, processed)
	require.NoError(t, err)
}

func idAt(at time.Time) string {
	id := uuid.Must(uuid.NewV7())
	for i, ms := 5, at.UnixMilli(); i >= 0; i, ms = i-1, ms>>8 {
		id[i] = byte(ms)
	}
	return id.String()
}

func idsOf(found []inbox.Remembered) []string {
	ids := make([]string, len(found))
	for i, r := range found {
		ids[i] = r.EventID
	}
	return ids
}

func TestHistoryIsNewestFirst(t *testing.T) {
	t.Parallel()
	pool := setup(t).Pool
	now := time.Now().UTC().Truncate(time.Millisecond)
	ago := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	ids := map[string]string{}
	for name, age := range map[string]time.Duration{"old": 50 * time.Hour, "mid": 2 * time.Hour, "new": time.Hour} {
		ids[name] = idAt(*ago(age))
		apply(t, pool, "a", "t.v1", ids[name], ago(age), now)
	}
	apply(t, pool, "a", "t.v1", "order-7", nil, *ago(90 * time.Minute))
	apply(t, pool, "b", "t.v1", ids["mid"], ago(2*time.Hour), now)
	apply(t, pool, "a", "other.v1", idAt(now), &now, now)
	apply(t, pool, "c", "t.v1", idAt(now), &now, now)
	of := func(f inbox.HistoryFilter) []inbox.Remembered {
		f.EventType = "t.v1"
		found, unread, err := inbox.History(t.Context(), pool, f)
		require.NoError(t, err)
		require.Nil(t, unread, "all rows were read")
		return found
	}
	both := []string{"a", "b"}
	found := of(inbox.HistoryFilter{Consumers: both})
	require.Equal(t, []string{ids["new"], "order-7", ids["mid"], ids["mid"], ids["old"]}, idsOf(found))
	require.Equal(t, []string{"a", "b"}, []string{found[2].Consumer, found[3].Consumer})
	require.EqualValues(t, 7, *found[0].Took)
	require.Equal(t, inbox.Applied, found[0].Outcome)

	require.Equal(t, []string{ids["new"], "order-7"}, idsOf(of(inbox.HistoryFilter{Consumers: both, Limit: 2})))
	require.Equal(t, []string{"order-7", ids["mid"]},
		idsOf(of(inbox.HistoryFilter{Consumers: []string{"a"}, Since: *ago(2 * time.Hour), Until: *ago(time.Hour)})))
	require.Empty(t, of(inbox.HistoryFilter{Consumers: []string{"b"}, Since: *ago(time.Hour)}))
}

func TestHistorySaysWhereItStopped(t *testing.T) {
	t.Parallel()
	pool := fresh(t).Pool
	old := time.Now().UTC().Add(-time.Hour).Truncate(time.Millisecond)
	apply(t, pool, "a", "rare.v1", idAt(old), &old, old)
	apply(t, pool, "a", "rare.v1", "rare", nil, old)
	_, err := pool.Exec(t.Context(), `
insert into public.inbox (consumer, event_id, event_time, event_type, payload_hash, processed_at)
select 'a', case when foreign_id then 'n' || n
        else left(id, 8) || '-' || right(id, 4) || '-7000-8000-' || lpad(n::text, 12, '0') end,
    case when foreign_id then '1970-01-01Z' else at end, 'common.v1', '\x01', at
from generate_series(1, 200000) n
cross join (values (true), (false)) v (foreign_id)
cross join lateral (select $1::timestamptz + n * interval '1 ms' as at) a
cross join lateral (select lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') as id) i`, old)
	require.NoError(t, err)
	f := inbox.HistoryFilter{Consumers: []string{"a"}, EventType: "rare.v1"}
	found, unread, err := inbox.History(t.Context(), pool, f)
	require.NoError(t, err)
	require.Empty(t, found)
	require.Equal(t, old, unread.UTC())

	f.Until = unread.Add(time.Millisecond)
	found, unread, err = inbox.History(t.Context(), pool, f)
	require.NoError(t, err)
	require.Nil(t, unread)
	require.Len(t, found, 2)
}

const remember = `
insert into public.inbox (consumer, event_id, event_time, event_type, payload_hash, metadata)
values ($1, $2, '1970-01-01', 't.v1', '\x01', $3)`

func TestLookup(t *testing.T) {
	t.Parallel()
	pool := setup(t).Pool
	for consumer, metadata := range map[string]string{
		"a": `{"topic":"users","partition":3,"offset":17,"correlation_id":"c",
			"processing_time":"2026-11-21T10:00:00Z","processing_time_ms":7,"caller":{"n": 1}}`,
		"b": `{"outcome":"stale"}`, "other": `{}`,
	} {
		_, err := pool.Exec(t.Context(), remember, consumer, "e", metadata)
		require.NoError(t, err)
	}
	found, err := inbox.Lookup(t.Context(), pool, []string{"a", "b", "c"}, "e")
	require.NoError(t, err)
	require.Len(t, found, 2, "of the consumers asked for alone")
	require.Equal(t, inbox.Remembered{
		Consumer: "a", EventID: "e", EventType: "t.v1", Outcome: inbox.Applied, ProcessedAt: found[0].ProcessedAt,
		PayloadHash: []byte{1}, Topic: "users", Partition: 3, Offset: 17, Correlation: "c",
		TakenAt: found[0].TakenAt, Took: new(int64(7)),
		Metadata: json.RawMessage(`{"n": 1}`),
	}, found[0])
	require.Equal(t, "2026-11-21T10:00:00Z", found[0].TakenAt.UTC().Format(time.RFC3339))
	require.Equal(t, "e", found[1].Correlation, "a first event is its own")
	require.Nil(t, found[1].TakenAt)
	require.Nil(t, found[1].Metadata)
	require.Equal(t, inbox.Stale, found[1].Outcome, "in a row of the first edition")
	found, err = inbox.Lookup(t.Context(), pool, []string{"a"}, "unknown")
	require.NoError(t, err)
	require.Empty(t, found)
}

func (b *bundle) metadata(t *testing.T, id string) string {
	t.Helper()
	found, err := inbox.Lookup(t.Context(), b.Pool, []string{b.Config.Consumer}, id)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, inbox.Applied, found[0].Outcome)
	return string(found[0].Metadata)
}

func TestAHandlerPutsMetadataBesideItsID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.Inbox(t)
	process := func(id string, metadata ...map[string]any) error {
		_, err := in.Process(t.Context(), id, func(ctx context.Context, tx pgx.Tx) error {
			for _, m := range metadata {
				if err := inbox.PutMetadata(ctx, tx, m); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	}
	require.NoError(t, process("none"))
	require.Empty(t, b.metadata(t, "none"))
	require.NoError(t, process("id", map[string]any{"n": 1}, map[string]any{"mail": "m", "outcome": "failed"}))
	require.JSONEq(t, `{"mail":"m","outcome":"failed"}`, b.metadata(t, "id"))
	require.NoError(t, process("id", map[string]any{"n": 2}), "a duplicate runs nothing")
	require.JSONEq(t, `{"mail":"m","outcome":"failed"}`, b.metadata(t, "id"))

	long := map[string]any{"long": strings.Repeat("x", inbox.MaxMetadataBytes)}
	err := process("long", map[string]any{"n": 1}, long)
	require.ErrorContains(t, err, "at most 4096 bytes of JSON")
	require.Equal(t, failure.Permanent, failure.Classify(err))
	require.NoError(t, process("long"))
	require.Empty(t, b.metadata(t, "long"), "the failed attempt left nothing")

	_, err = in.Process(t.Context(), "savepoint", func(ctx context.Context, tx pgx.Tx) error {
		return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return inbox.PutMetadata(ctx, tx, long) })
	})
	require.ErrorContains(t, err, "needs a handler's transaction")
}

func TestEachEventOfABatchHasItsOwnMetadata(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, _ testData) error {
		return inbox.PutMetadata(ctx, tx, map[string]any{"version": e.Version})
	})
	events := versions("key-1", 1, 2, 3)()
	_, err := handle(t.Context(), records(t, t.Context(), events...))
	require.NoError(t, err)
	for i, e := range events {
		require.JSONEq(t, fmt.Sprintf(`{"version":%d}`, i+1), b.metadata(t, e.ID))
	}
}
