package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
)

// dies runs the call in a goroutine that ends in its handler, after the effect.
func dies(in *Inbox, id string, effect func(context.Context) error) {
	died := make(chan struct{})
	go func() {
		defer close(died)
		_, _ = in.Process(context.Background(), "test", id, func(ctx context.Context) error {
			_ = effect(ctx)
			runtime.Goexit()
			return nil
		})
	}()
	<-died
}

func TestAClaimOfAnotherOwnerIsLeftAloneForAHandlersTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		registry, store, done := prometheus.NewRegistry(), NewMemory(0), &effects{}
		cfg := quiet(registry)
		cfg.HandlerTimeout, cfg.StoreTimeout = time.Minute, time.Second
		dies(newInbox(t, store, cfg), "id-1", done.note("id-1"))

		cfg.Owner = ""
		began := time.Now()
		outcome, err := newInbox(t, store, cfg).Process(t.Context(), "test", "id-1", done.note("id-1"))
		require.NoError(t, err)
		require.Equal(t, Applied, outcome)
		require.InDelta(t, cfg.patience(), time.Since(began), float64(10*cfg.retryMax))
		require.Equal(t, 2, done.of("id-1"), "exactly one repeat")
		require.Equal(t, 1, counter(t, registry, secondEffects, "crash"))
		require.Equal(t, 1, counter(t, registry, secondEffects))
	})
}

func TestAHandlerThatOverranIsFoundLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		registry, store, done := prometheus.NewRegistry(), NewMemory(0), &effects{}
		cfg := quiet(registry)
		cfg.HandlerTimeout, cfg.StoreTimeout = time.Minute, time.Second
		slow := newInbox(t, store, cfg)
		cfg.Owner = "other"
		quick := newInbox(t, store, cfg)
		var outcome Outcome
		var err error
		var both sync.WaitGroup
		both.Go(func() {
			outcome, err = slow.Process(t.Context(), "test", "id-1", func(ctx context.Context) error {
				<-ctx.Done()
				_ = failure.Sleep(context.WithoutCancel(ctx), time.Hour)
				return done.note("id-1")(ctx)
			})
		})
		synctest.Wait()
		second, secondErr := quick.Process(t.Context(), "test", "id-1", done.note("id-1"))
		require.NoError(t, secondErr)
		require.Equal(t, Applied, second)
		both.Wait()
		require.NoError(t, err)
		require.Equal(t, Duplicate, outcome)
		require.Equal(t, 2, done.of("id-1"))
		require.Equal(t, 1, counter(t, registry, secondEffects, "late"))
	})
}

func TestWhatIsKnownOutlivesNoStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		registry, store, done := prometheus.NewRegistry(), NewMemory(time.Hour), &effects{}
		first, other := newInbox(t, store, quiet(registry)), newInbox(t, store, quiet(registry))
		process := func(in *Inbox, want Outcome) {
			t.Helper()
			outcome, err := in.Process(t.Context(), "test", "id-1", done.note("id-1"))
			require.NoError(t, err)
			require.Equal(t, want, outcome)
		}
		process(first, Applied)
		time.Sleep(59 * time.Minute) //nolint:forbidigo // the bubble's clock
		process(first, Duplicate)
		require.Equal(t, 1, counter(t, registry, lookups, "cache"))
		process(other, Duplicate)
		require.Equal(t, 1, counter(t, registry, lookups, "store"), "it asked, and knows it for the minute that is left")
		process(other, Duplicate)
		require.Equal(t, 2, counter(t, registry, lookups, "cache"))
		time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock
		process(other, Applied)
		process(first, Duplicate)
		require.Equal(t, 2, done.of("id-1"))
		require.Equal(t, 2, counter(t, registry, lookups, "store"), "the first one asked too")
	})
}

func TestAnEffectThatIsNotMarkedIsMarkedLater(t *testing.T) {
	t.Parallel()
	registry, done, away := prometheus.NewRegistry(), &effects{}, false
	store := &troubled{Store: NewMemory(0), before: func(string, []byte) error {
		if away {
			return errAway
		}
		return nil
	}}
	in := newInbox(t, store, quiet(registry))
	ctx, cancel := context.WithCancel(t.Context())
	outcome, err := in.Process(ctx, "test", "id-1", func(ctx context.Context) error {
		away = true
		cancel()
		return done.note("id-1")(ctx)
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, ErrUnavailable)
	require.Equal(t, Failed, outcome)
	require.Equal(t, 1, counter(t, registry, secondEffects, "unmarked"))
	require.Zero(t, in.cache.ids.Len(), "the store has not said yes")

	away = false
	outcome, err = in.Process(t.Context(), "test", "id-1", done.note("id-1"))
	require.NoError(t, err)
	require.Equal(t, Applied, outcome)
	require.Equal(t, 1, done.of("id-1"))
	outcome, err = in.Process(t.Context(), "test", "id-1", done.note("id-1"))
	require.NoError(t, err)
	require.Equal(t, Duplicate, outcome)
}

func TestAStopLeavesNothingToRepeat(t *testing.T) {
	t.Parallel()
	registry, store, done := prometheus.NewRegistry(), NewMemory(0), &effects{}
	ctx, cancel := context.WithCancel(t.Context())
	outcome, err := newInbox(t, store, quiet(registry)).Process(ctx, "test", "id-1", func(ctx context.Context) error {
		cancel()
		return done.note("id-1")(ctx)
	})
	require.NoError(t, err)
	require.Equal(t, Applied, outcome)
	outcome, err = newInbox(t, store, quiet(registry)).Process(t.Context(), "test", "id-1", done.note("id-1"))
	require.NoError(t, err)
	require.Equal(t, Duplicate, outcome)
	require.Zero(t, counter(t, registry, secondEffects))
}

func TestAStoreThatIsAwayFailsClosed(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	store := &troubled{Store: NewMemory(0), before: func(string, []byte) error { return errAway }}
	in := newInbox(t, store, quiet(registry))
	outcome, err := in.Process(t.Context(), "test", "id-1", func(context.Context) error {
		t.Error("ran")
		return nil
	})
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, err, errAway)
	require.Equal(t, failure.Transient, failure.Classify(err))
	require.Equal(t, Failed, outcome)
	require.Equal(t, 1, counter(t, registry, storeErrors, "test", "claim"))
	require.Equal(t, 1, counter(t, registry, messages, "test", "failed"))
}

// Each request is carried out and its answer is lost, once.
func TestALostAnswerRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, lost := range []state{began, done} {
		t.Run(string(lost), func(t *testing.T) {
			t.Parallel()
			registry, effect, hits := prometheus.NewRegistry(), &effects{}, 0
			store := &troubled{Store: NewMemory(0), after: func(_ string, value []byte) error {
				if bytes.HasPrefix(value, []byte(lost)) {
					if hits++; hits == 1 {
						return errAway
					}
				}
				return nil
			}}
			in := newInbox(t, store, quiet(registry))
			outcome, err := in.Process(t.Context(), "test", "id-1", effect.note("id-1"))
			if lost == began {
				require.ErrorIs(t, err, ErrUnavailable)
				require.Equal(t, Failed, outcome)
				outcome, err = in.Process(t.Context(), "test", "id-1", effect.note("id-1"))
			}
			require.NoError(t, err)
			require.Equal(t, Applied, outcome)
			require.Equal(t, 1, effect.of("id-1"))
			require.Zero(t, counter(t, registry, secondEffects), "it was this process's own")
			require.Equal(t, 1, in.cache.ids.Len())
		})
	}
}

func TestAStoreThatForgotTheClaimTakesTheMark(t *testing.T) {
	t.Parallel()
	registry, store, done := prometheus.NewRegistry(), NewMemory(0), &effects{}
	in := newInbox(t, store, quiet(registry))
	outcome, err := in.Process(t.Context(), "test", "id-1", func(ctx context.Context) error {
		forget(t, store, digestOf("test", "id-1").key())
		return done.note("id-1")(ctx)
	})
	require.NoError(t, err)
	require.Equal(t, Applied, outcome)
	outcome, err = newInbox(t, store, quiet(registry)).Process(t.Context(), "test", "id-1", done.note("id-1"))
	require.NoError(t, err)
	require.Equal(t, Duplicate, outcome)
}

func TestAForeignValueStopsTheConsumer(t *testing.T) {
	t.Parallel()
	store := NewMemory(0)
	_, err := store.Put(t.Context(), digestOf("test", "id-1").key(), []byte("hello"), 0)
	require.NoError(t, err)
	_, err = newInbox(t, store, quiet(prometheus.NewRegistry())).Process(t.Context(), "test", "id-1", nil)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "not an inbox's")
}

func TestAPanicLeavesTheIDToTheNextCall(t *testing.T) {
	t.Parallel()
	registry, done := prometheus.NewRegistry(), &effects{}
	in := newInbox(t, NewMemory(0), quiet(registry))
	require.Panics(t, func() {
		_, _ = in.Process(t.Context(), "test", "id-1", func(context.Context) error { panic("no idea") })
	})
	outcome, err := in.Process(t.Context(), "test", "id-1", done.note("id-1"))
	require.NoError(t, err)
	require.Equal(t, Applied, outcome)
	require.Zero(t, counter(t, registry, secondEffects))
}

func TestEffectsAreNeverMoreThanCounted(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) { randomSchedule(t, seed) })
	}
}

func randomSchedule(t *testing.T, seed uint64) {
	t.Helper()
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	chance := func(percent int) bool {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(100) < percent
	}
	fail := func(string, []byte) error {
		if chance(10) {
			return errAway
		}
		return nil
	}
	registry, done := prometheus.NewRegistry(), &effects{}
	store := &troubled{Store: NewMemory(0), before: fail, after: fail, stale: func() bool { return chance(10) }}
	cfg := quiet(registry)
	cfg.HandlerTimeout, cfg.StoreTimeout, cfg.Cache = time.Second, time.Second, 2
	var owners sync.WaitGroup
	for owner := range 3 {
		owners.Go(func() {
			cfg := cfg
			cfg.Owner = fmt.Sprint("owner-", owner)
			in := newInbox(t, store, cfg)
			for delivery := range 30 {
				if chance(10) {
					in = newInbox(t, store, cfg)
				}
				id := fmt.Sprint("id-", delivery%5)
				if chance(10) {
					dies(in, id, done.note(id))
					in = newInbox(t, store, cfg)
					continue
				}
				_, _ = in.Process(context.Background(), "test", id, func(ctx context.Context) error {
					if chance(10) {
						return errors.New("broken")
					}
					if chance(10) {
						_ = failure.Sleep(context.WithoutCancel(ctx), 10*time.Second)
					}
					return done.note(id)(ctx)
				})
			}
		})
	}
	owners.Wait()
	store.before, store.after, store.stale = nil, nil, nil
	in, sum := newInbox(t, store, cfg), 0
	for i := range 5 {
		id := fmt.Sprint("id-", i)
		_, err := in.Process(context.Background(), "test", id, done.note(id))
		require.NoError(t, err)
		require.GreaterOrEqual(t, done.of(id), 1, "seed %d", seed)
		sum += done.of(id)
	}
	require.LessOrEqual(t, sum, 5+counter(t, registry, secondEffects), "seed %d", seed)
}

func TestMistakesOfTheCallerAreRefused(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{Cache: -1}, {HandlerTimeout: -1}, {StoreTimeout: -1}} {
		_, err := New(NewMemory(0), cfg)
		require.ErrorContains(t, err, "must be positive")
	}
	in := newInbox(t, NewMemory(0), quiet(prometheus.NewRegistry()))
	for _, consumer := range []string{"", "a\x00b"} {
		outcome, err := in.Process(t.Context(), consumer, "id-1", nil)
		require.Equal(t, Failed, outcome)
		require.Equal(t, failure.Permanent, failure.Classify(err))
	}
}

func bytesPerID(tb testing.TB, ids int) float64 {
	tb.Helper()
	known, err := newCache(ids, time.Hour, prometheus.NewCounter(prometheus.CounterOpts{Name: "evictions"}))
	require.NoError(tb, err)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	now := time.Now()
	for i := range ids + ids/2 { // a third is evicted
		known.add(digestOf("consumer", fmt.Sprint(i)), now)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Equal(tb, ids, known.ids.Len())
	runtime.KeepAlive(known)
	return float64(after.HeapAlloc-before.HeapAlloc) / float64(ids)
}

// Not parallel: it measures the heap.
func TestAnIDTakesSoManyBytes(t *testing.T) {
	require.Less(t, bytesPerID(t, 30_000), 250.)
}

func BenchmarkAMillionIDs(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(bytesPerID(b, 1_000_000), "bytes/id")
	}
}
