package inbox_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/testkit"
)

type roundTrips struct{ n int }

func (r *roundTrips) count(ctx context.Context) context.Context {
	r.n++
	return ctx
}

func (b *bundle) counting(t *testing.T) *roundTrips {
	t.Helper()
	trips := &roundTrips{}
	cfg := b.Pool.Config()
	cfg.ConnConfig.Tracer = testkit.Tracer{Begin: trips.count}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	b.Config.Pool = pool
	return trips
}

// Begin travels with point, keys and ids, the writes with the commit. Duplicates take a third, for the comparison.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	const want = 2
	shared := setup(t)
	for _, order := range []inbox.Order{inbox.Unordered, inbox.Latest, inbox.Strict} {
		for _, size := range []int{1, 50} {
			b := shared.again(t)
			b.Config.Order, b.Config.Accepts = order, acceptsTestType
			b.Exec(t, beginPoint, 0)
			trips := b.counting(t)
			_, handle := b.handle(t, queueing(nil))
			cost := func(events []event.Event) int {
				trips.n = 0
				handled, err := handle(t.Context(), owned(0, records(t, t.Context(), events...)...))
				require.NoError(t, err)
				require.Equal(t, size, handled)
				return trips.n
			}
			first, second := make([]event.Event, size), make([]event.Event, size)
			for i := range size {
				first[i], second[i] = v(string(rune('a'+i)), 1), v(string(rune('a'+i)), 2)
			}
			require.Equal(t, 1+want, cost(first), "%s, %d: it also takes the partition", order, size)
			require.Equal(t, want, cost(second), "%s, %d", order, size)
			require.Equal(t, want+1, cost(second), "duplicates: %s, %d", order, size)
			if size > 1 {
				third := versions("new", make([]int64, size)...)()
				third[0].Type = ignoredType
				require.Equal(t, want, cost(third), "one is ignored: %s", order)
			}
		}
	}
}
