package inbox_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/test/testkit"
)

// killer is a process that dies before or after its nth statement. It sends nothing after that.
type killer struct {
	left  atomic.Int64
	after bool
	alive context.Context
	die   context.CancelFunc
}

func (k *killer) start(ctx context.Context) context.Context {
	k.hit(false)
	if k.alive.Err() != nil {
		return k.alive
	}
	return ctx
}

func (k *killer) hit(after bool) {
	if k.after == after && k.left.Add(-1) == 0 {
		k.die()
	}
}

// `make test-long` sets more.
var statements = flag.Int("inbox.statements", 4, "deaths per story, around random statements; 0: around every one")

func TestAProcessThatDiesAroundAnyStatement(t *testing.T) {
	t.Parallel()
	for _, order := range []inbox.Order{inbox.Unordered, inbox.Strict} {
		for _, batch := range []int{1, 3} {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, batch %d, after %t", order, batch, after), func(t *testing.T) {
					t.Parallel()
					b := setup(t)
					b.Config.Order, b.Config.Batch, b.Config.MaxAttempts = order, batch, 2
					deaths := rand.Perm(b.dieAt(t, math.MaxInt64, after))
					if *statements > 0 {
						deaths = deaths[:min(*statements, len(deaths))]
					}
					t.Logf("%d deaths", len(deaths))
					for _, n := range deaths {
						b.dieAt(t, int64(n+1), after)
					}
				})
			}
		}
	}
}

// dieAt runs a life that dies around its nth statement, and a whole one. It returns the first one's statements.
func (b *bundle) dieAt(t *testing.T, n int64, after bool) (sent int) {
	t.Helper()
	fresh := b.again(t)
	fresh.Config = b.Config
	events := []event.Event{
		v("a", 1), v("b", 2), v("a", 2), payload(v("c", 1), `{"value":"bad"}`), v("b", 1), v("c", 2),
	}
	k := &killer{after: after}
	k.left.Store(n)
	k.alive, k.die = context.WithCancel(t.Context())
	defer k.die()
	cfg := b.Pool.Config()
	cfg.ConnConfig.Tracer = testkit.Tracer{Begin: k.start, End: func(context.Context) { k.hit(true) }}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	defer pool.Close()
	if err = fresh.live(t, k.alive, pool, events); k.alive.Err() == nil {
		require.NoError(t, err)
	} else {
		require.NoError(t, fresh.live(t, t.Context(), b.Pool, events))
	}
	fresh.requireAllOnce(t, events, fmt.Sprintf("statement %d", n))
	return int(n - k.left.Load())
}

func (b *bundle) live(t *testing.T, ctx context.Context, pool *pgxpool.Pool, events []event.Event) error {
	t.Helper()
	cfg := b.Config
	cfg.Pool = pool
	in, err := inbox.New(cfg)
	require.NoError(t, err)
	ill := true
	mux := muxOf(func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
		if data.Value == "bad" && ill {
			return errors.New("ill")
		}
		return inbox.Queue(ctx, tx, `insert into ledger (event_id) values ($1)`, e.ID)
	})
	for part := range slices.Chunk(replayable(t, ctx, append(events, events[0], events[3])...), cfg.Batch) {
		if _, err := in.BatchMiddleware(mux.HandleMessage)(ctx, part); err != nil {
			return err
		}
	}
	ill = false
	replayer := inbox.NewReplayer(in, mux.HandleMessage)
	err = replayer.Replay(ctx, deadletter.Filter{Code: inbox.CodeHandlerFailed}, byAna)
	if err != nil {
		return err
	}
	return errors.Join(replayer.ResumeRound(ctx), in.Close(ctx))
}

func (b *bundle) requireAllOnce(t *testing.T, events []event.Event, story string) {
	t.Helper()
	effects, want := b.List(t, `select event_id from ledger order by n`), make([]string, len(events))
	for i, e := range events {
		want[i] = e.ID
	}
	require.ElementsMatch(t, want, effects, story)
	require.Zero(t, b.Count(t, `select count(*) from dead_letter where state = 'waiting'`), story)
	if b.Config.Order != inbox.Strict {
		return
	}
	at := func(key string, version int64) int {
		i := slices.IndexFunc(events, func(e event.Event) bool { return e.Key == key && e.Version == version })
		return slices.Index(effects, events[i].ID)
	}
	for _, key := range []string{"a", "b", "c"} {
		require.Less(t, at(key, 1), at(key, 2), "%s: key %s", story, key)
	}
}
