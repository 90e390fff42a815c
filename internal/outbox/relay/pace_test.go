package relay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/outbox/window"
)

// The first round after a rest, and the one that follows it, begin at once; those behind them keep the interval, until
// one finds nothing to go on with.
func TestRoundsKeepTheirIntervalWhileCommitsCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const every, round = 4 * time.Millisecond, time.Millisecond
		wake := make(chan struct{}, 1)
		p := roundPace{every: every, sleep: failure.Sleep}
		next := func(committed bool) (waited time.Duration, goesOn bool) {
			p.began = time.Now()
			<-time.After(round)
			if committed {
				wake <- struct{}{}
			}
			goesOn = p.goesOn(t.Context(), wake)
			return time.Since(p.began), goesOn
		}
		for range 2 {
			waited, goesOn := next(false)
			require.False(t, goesOn)
			require.Equal(t, round, waited, "at rest nothing is waited for")
		}
		waited, goesOn := next(true)
		require.True(t, goesOn)
		require.Equal(t, round, waited, "what was committed during the first round does not wait")
		for range 3 {
			waited, goesOn = next(true)
			require.True(t, goesOn)
			require.Equal(t, every, waited)
		}
		waited, goesOn = next(false)
		require.False(t, goesOn, "nothing came")
		require.Equal(t, every, waited)
		waited, goesOn = next(true)
		require.True(t, goesOn)
		require.Equal(t, round, waited, "a rest ends it")

		p.every = round / 2
		waited, _ = next(true)
		require.Equal(t, round, waited, "a round that takes longer than the interval is followed at once")

		p.every = time.Hour
		ctx, stop := context.WithCancel(t.Context())
		p.began = time.Now()
		go stop()
		p.goesOn(ctx, wake)
		require.Less(t, time.Since(p.began), time.Hour, "a stop does not wait")
	})
}

// Each call of Publish commits the next event. The first two rounds begin without a pause, and each later one after
// its own.
func TestARelayUnderLoadPausesBetweenRounds(t *testing.T) {
	t.Parallel()
	const events = 6
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.Wake, cfg.RoundEvery, cfg.PollMin, cfg.PollMax, cfg.Lease = o.Wake(), time.Hour, time.Hour, time.Hour, 4*time.Hour
	ctx, stop := context.WithCancel(t.Context())
	l.Follow(func(call int, _ string, _ []*message.Message) error {
		if call == events {
			stop()
			return nil
		}
		commit(t, o, pool, event("k"))
		o.Committed()
		return nil
	})
	leader := newLeader(t, pool, cfg)
	var pauses []int // by the calls of Publish before them
	leader.pace.sleep = func(_ context.Context, d time.Duration) error {
		require.Positive(t, d)
		require.LessOrEqual(t, d, time.Hour)
		pauses = append(pauses, l.CallCount())
		return nil
	}
	commit(t, o, pool, event("k"))
	require.ErrorIs(t, leader.run(ctx), context.Canceled)
	require.Equal(t, []int{2, 3, 4, 5, 6}, pauses)
	requireAll(t, pool, l.AwaitDistinct(t, events))
}

// At rest a window is closed soon, though nothing follows it and no poll is near.
func TestAWindowIsClosedAtRest(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.Wake, cfg.PollMin, cfg.PollMax, cfg.Lease = o.Wake(), time.Hour, time.Hour, 4*time.Hour
	startRelay(t, cfg)
	for n := range 2 {
		commit(t, o, pool, event("k"))
		o.Committed()
		l.AwaitDistinct(t, n+1)
		awaitCaughtUp(t, pool)
	}
}

// What is out is recorded before the relay waits for an operator, or sends held rows, or stops.
func TestWhatIsThroughIsRecordedBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(context.Context, *leader) error{
		"partition counts": func(ctx context.Context, l *leader) error {
			return l.awaitSuccess(ctx, l.checkTopics)
		},
		"held rows": func(ctx context.Context, l *leader) error {
			l.parked[window.Key{Topic: testTopic, Key: "other"}] = 1
			_, err := l.doChores(ctx)
			return err
		},
		"a stop": func(ctx context.Context, l *leader) error {
			ctx, stop := context.WithCancel(ctx)
			stop()
			if err := l.run(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, pool := newOutbox(t), newDatabase(t)
			cfg := testRelayConfig(t, pool, newLedger())
			cfg.Topics = func(context.Context) (map[string]int32, error) {
				require.Zero(t, number(t, pool, `select count(*) from outbox_cursor where win is not null`))
				return nil, nil
			}
			l := newLeader(t, pool, cfg)
			l.topicsAt = time.Now().Add(time.Hour)
			commit(t, o, pool, event("k"))
			found, err := l.publishNext(t.Context())
			require.NoError(t, err)
			require.True(t, found)
			require.True(t, l.through, "it stays open")
			require.NoError(t, prepare(t.Context(), l))
			require.False(t, l.through)
			awaitCaughtUp(t, pool)
		})
	}
}
