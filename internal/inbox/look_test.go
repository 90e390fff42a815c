package inbox_test

import (
	"context"
	"slices"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
)

// roundTrips counts what is sent to the database and waited for.
type roundTrips struct{ n int }

func (r *roundTrips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	r.n++
	return ctx
}

func (*roundTrips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (r *roundTrips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	r.n++
	return ctx
}

func (*roundTrips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*roundTrips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func (b *bundle) counting(t *testing.T) *roundTrips {
	t.Helper()
	trips := &roundTrips{}
	cfg := b.Pool.Config()
	cfg.ConnConfig.Tracer = trips
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	b.Config.Pool = pool
	return trips
}

// What a delivery costs: two round trips, one for a redelivery among redeliveries, and two again for what is new behind
// them; a redelivery within a batch costs the batch nothing.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	for batch, want := range map[int][]int{
		1: {2, 2, 2, 2, 2, 1, 1, 1, 3, 2}, // what is new behind a run of redeliveries is looked for once
		3: {2, 2},
	} {
		b := setup(t)
		b.Config.Batch = batch
		trips := b.counting(t)
		a, c, d := newEvent(), newEvent(), newEvent()
		events := []cloudevent.Event{a, c, a, c, a, c, a, c, d, newEvent()}
		if batch == 3 {
			events = []cloudevent.Event{a, newEvent(), c, a, d, c}
		}
		mux := inbox.NewMux()
		inbox.Handle(mux, testEvent, queueing(nil))
		handle := b.Inbox(t).BatchMiddleware(mux.HandleMessage)
		_, err := handle(t.Context(), []*message.Message{record(t, newEvent(), 0)}) // takes the partition
		require.NoError(t, err)
		var cost []int
		for part := range slices.Chunk(events, batch) {
			msgs := make([]*message.Message, len(part))
			for i, e := range part {
				msgs[i] = record(t, e, 1)
			}
			trips.n = 0
			_, err := handle(t.Context(), msgs)
			require.NoError(t, err)
			cost = append(cost, trips.n)
		}
		require.Equal(t, want, cost, "events per transaction: %d", batch)
	}
}
