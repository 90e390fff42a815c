package circuit_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/service/circuit"
)

var quiet = slog.New(slog.DiscardHandler)

type server struct {
	off    atomic.Bool
	probes atomic.Int64
	reset  atomic.Int64
	log    bytes.Buffer
}

func (s *server) probe(context.Context) error {
	s.probes.Add(1)
	if s.off.Load() {
		return syscall.ECONNREFUSED
	}
	return nil
}

func (s *server) run(t *testing.T, f func(ctx context.Context, c *circuit.Circuit)) {
	t.Helper()
	s.runWith(t, s.probe, f)
}

func (s *server) runWith(
	t *testing.T, probe func(context.Context) error, f func(ctx context.Context, c *circuit.Circuit),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := circuit.New(circuit.Config{
			Name: "database", Probe: probe, OnUp: func() { s.reset.Add(1) },
			Log: slog.New(slog.NewTextHandler(&s.log, nil)),
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		f(ctx, c)
		stop()
		require.NoError(t, <-ended)
	})
}

func TestAnOutageIsSaidOnceAndItsEndOnce(t *testing.T) {
	t.Parallel()
	s := &server{}
	s.run(t, func(ctx context.Context, c *circuit.Circuit) {
		require.NoError(t, c.Err())
		require.NoError(t, c.Await(ctx))
		s.off.Store(true)
		<-time.After(time.Second)
		c.Report(io.EOF)
		synctest.Wait()
		var down *circuit.DownError
		require.ErrorAs(t, c.Err(), &down)
		require.Equal(t, failure.Transient, failure.Classify(c.Err()))

		began := time.Now()
		time.AfterFunc(time.Minute, func() { s.off.Store(false) })
		for range 1000 {
			c.Report(syscall.ECONNREFUSED)
		}
		require.NoError(t, c.Await(ctx))
		require.WithinRange(t, time.Now(), began.Add(time.Minute), began.Add(time.Minute+time.Second))
		require.NoError(t, c.Err())
		require.EqualValues(t, 1, s.reset.Load())
		require.Less(t, s.probes.Load(), int64(150), "they do not multiply with waiting callers")
	})
	lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
	require.Len(t, lines, 2, s.log.String())
	require.Contains(t, lines[0], `msg="dependency is down" dependency=database code=network`)
	require.Contains(t, lines[1], `msg="dependency is back" dependency=database after=1m0`)
}

func TestReadyOnceTheServerWasReached(t *testing.T) {
	t.Parallel()
	s := &server{}
	require.ErrorContains(t, circuit.New(circuit.Config{Name: "broker", Log: quiet}).Ready(), "not reached yet")
	s.run(t, func(_ context.Context, c *circuit.Circuit) {
		require.NoError(t, c.Ready())
		s.off.Store(true)
		<-time.After(6 * time.Second)
		require.ErrorContains(t, c.Ready(), "database is down")
	})
}

func TestThoseWhoPauseAreWoken(t *testing.T) {
	t.Parallel()
	s := &server{}
	s.run(t, func(ctx context.Context, c *circuit.Circuit) {
		began := time.Now()
		require.NoError(t, c.Pause(ctx, 30*time.Second))
		require.Equal(t, 30*time.Second, time.Since(began), "there was no outage")

		s.off.Store(true)
		<-time.After(6 * time.Second) // the regular probe finds it
		require.True(t, c.Down())
		time.AfterFunc(2*time.Second, func() { s.off.Store(false) })
		began = time.Now()
		require.NoError(t, c.Pause(ctx, 30*time.Second))
		require.LessOrEqual(t, time.Since(began), 3*time.Second)
	})
}

func TestABlipIsNoOutage(t *testing.T) {
	t.Parallel()
	s := &server{}
	s.run(t, func(_ context.Context, c *circuit.Circuit) {
		before := s.probes.Load()
		<-time.After(time.Second)
		c.Report(io.EOF)
		synctest.Wait()
		require.Equal(t, before+1, s.probes.Load())
		require.False(t, c.Down())
		for _, fit := range []error{
			nil, &pgconn.PgError{Code: "40P01"}, &pgconn.PgError{Code: "23505"}, errors.New("of the handler"),
			context.Canceled, context.DeadlineExceeded, sarama.ErrNotLeaderForPartition,
		} {
			c.Report(fit)
			synctest.Wait()
			require.Equal(t, before+1, s.probes.Load(), "%v is no reason to ask", fit)
		}
	})
	require.Empty(t, s.log.String())
}

func TestAProbeAnswersForWhatWasReportedBeforeIt(t *testing.T) {
	t.Parallel()
	s := &server{}
	slow := func(ctx context.Context) error {
		err := s.probe(ctx)
		<-time.After(time.Second)
		return err
	}
	s.runWith(t, slow, func(ctx context.Context, c *circuit.Circuit) {
		s.off.Store(true)
		c.Report(io.EOF)
		<-time.After(1500 * time.Millisecond)
		require.False(t, c.Down(), "the first answer is older than the report")
		<-time.After(time.Second)
		require.True(t, c.Down())
		s.off.Store(false)
		require.NoError(t, c.Await(ctx))
	})
}

func TestWhoWaitsCanBeStopped(t *testing.T) {
	t.Parallel()
	s := &server{}
	s.off.Store(true)
	s.run(t, func(ctx context.Context, c *circuit.Circuit) {
		require.True(t, c.Down(), "down from the start")
		why := errors.New("partition lost")
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Second, func() { cancel(why) })
		require.ErrorIs(t, c.Await(ctx), why)
		require.ErrorIs(t, c.Pause(ctx, time.Hour), why)
	})
}

func TestASilentServerIsDown(t *testing.T) {
	t.Parallel()
	silent := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	(&server{}).runWith(t, silent, func(_ context.Context, c *circuit.Circuit) {
		<-time.After(3 * time.Second)
		require.NoError(t, c.Err(), "one silent probe may be this machine's fault")
		<-time.After(2 * time.Second)
		require.ErrorContains(t, c.Err(), "database is down: no answer within 2s")
		require.Equal(t, failure.Transient, failure.Classify(c.Err()))
	})
}

func TestALongOutageIsSaidOnceAMinute(t *testing.T) {
	t.Parallel()
	s := &server{}
	s.off.Store(true)
	s.run(t, func(ctx context.Context, c *circuit.Circuit) {
		time.AfterFunc(10*time.Minute+30*time.Second, func() { s.off.Store(false) })
		require.NoError(t, c.Await(ctx))
	})
	require.Equal(t, 1, strings.Count(s.log.String(), `"dependency is down"`))
	require.InDelta(t, 10, strings.Count(s.log.String(), `"dependency is still down"`), 1)
	require.Equal(t, 1, strings.Count(s.log.String(), `"dependency is back"`))
}

func TestComplaintsDoNotSetThePaceOfProbes(t *testing.T) {
	t.Parallel()
	s := &server{}
	s.run(t, func(_ context.Context, c *circuit.Circuit) {
		for began := time.Now(); time.Since(began) < time.Second; <-time.After(time.Millisecond) {
			c.Suspect()
		}
		require.Less(t, s.probes.Load(), int64(25))
	})
}

func TestLinesOfAnOutageAreDebug(t *testing.T) {
	t.Parallel()
	const ofTheHandler = "level=WARN msg=after consumer=c error=\"of the handler\"\n"
	for name, c := range map[string]struct {
		noDatabase, noBroker bool
		level                slog.Level
		line                 string
	}{
		"both are up":          {line: "level=WARN msg=after consumer=c n=1 error=EOF\n"},
		"the database is down": {noDatabase: true},
		"the broker is down":   {noBroker: true},
		"the broker is down, debug": {
			noBroker: true, level: slog.LevelDebug, line: "level=DEBUG msg=after consumer=c n=1 error=EOF\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				database, broker := &server{}, &server{}
				circuits := []*circuit.Circuit{
					circuit.New(circuit.Config{Name: "database", Log: quiet, Probe: database.probe}),
					circuit.New(circuit.Config{Name: "broker", Log: quiet, Probe: broker.probe}),
				}
				log := slog.New(circuit.Quiet(slog.NewTextHandler(&out, &slog.HandlerOptions{
					Level: c.level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
						if a.Key == slog.TimeKey {
							return slog.Attr{}
						}
						return a
					},
				}), circuits...)).With("consumer", "c")
				database.off.Store(c.noDatabase)
				broker.off.Store(c.noBroker)
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				for _, c := range circuits {
					running.Go(func() { _ = c.Run(ctx) })
				}
				synctest.Wait()
				log.Warn("after", "n", 1, "error", io.EOF)
				log.Warn("after", "error", errors.New("of the handler"))
				require.Equal(t, c.line+ofTheHandler, out.String())
				stop()
				running.Wait()
			})
		})
	}
}
