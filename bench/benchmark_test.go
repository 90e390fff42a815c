package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStepsRunInOrderUntilOneFails(t *testing.T) {
	t.Parallel()
	var ran []string
	do := func(name string, err error) step {
		return step{name, func(context.Context) error {
			ran = append(ran, name)
			<-time.After(3 * time.Second) // by the bubble's clock
			return err
		}}
	}
	steps := []step{do("a", nil), do("b", errors.New("broken")), do("c", nil)}
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		b := &benchmark{sheet: newSheet()}
		require.EqualError(t, b.run(t.Context(), streams{err: &out}, steps, ""), "b: broken")
		require.Equal(t, []string{"a", "b"}, ran)
		require.Equal(t, "  1 of 3     0s  a\n  2 of 3     3s  b\n", out.String())
	})
}

func TestStepsStopWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("Ctrl-C")
	err := (&benchmark{sheet: newSheet()}).run(ctx, streams{err: new(bytes.Buffer)}, []step{
		{"a", func(context.Context) error { cancel(stopped); return nil }},
		{"b", func(context.Context) error { panic("must not run") }},
	}, "")
	require.ErrorIs(t, err, stopped)
}

func TestAStepIsProfiled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "profiles")
	b := &benchmark{sheet: newSheet()}
	steps := []step{{"drain 1/1: ours", func(context.Context) error { return nil }}}
	require.NoError(t, b.run(t.Context(), streams{err: new(bytes.Buffer)}, steps, dir))
	require.FileExists(t, filepath.Join(dir, "drain-1-1-ours.pprof"))
}

func TestVariantsTakeTurnsInBeingFirst(t *testing.T) {
	t.Parallel()
	b := &benchmark{parts: []part{
		{name: "x", steps: []step{{name: "a"}, {name: "b"}}},
		{name: "y", once: true, steps: []step{{name: "c"}}},
		{name: "z", steps: []step{{name: "d"}}},
	}}
	names := func(only ...string) (names []string) {
		for _, s := range b.steps(only, 2) {
			names = append(names, s.name)
		}
		return names
	}
	require.Equal(t, []string{
		"x 1/2: a", "x 1/2: b", "x 2/2: b", "x 2/2: a", "y 1/1: c", "z 1/2: d", "z 2/2: d",
	}, names())
	require.Equal(t, []string{"y 1/1: c"}, names("y"))
}

func TestEachPartCanBeAskedFor(t *testing.T) {
	t.Parallel()
	for name, on := range smokePlans {
		for _, p := range on(&stage{}).parts {
			var out bytes.Buffer
			run(t.Context(), []string{name, "--only=" + p.name, "--rounds=-1"}, streams{&out, &out})
			require.Contains(t, out.String(), "must be positive", "%s %s", name, p.name)
		}
	}
}

func TestPartsOfAKafkaElsewhere(t *testing.T) {
	t.Parallel()
	require.Empty(t, (&RelayCommand{}).parts(), "all")
	require.Equal(t, []string{"drain", "latency"}, (&RelayCommand{options: options{Brokers: []string{"a:1"}}}).parts())
	asked := RelayCommand{options: options{Brokers: []string{"a:1"}}, Only: []string{"signups"}}
	require.Equal(t, []string{"signups"}, asked.parts())
}

func TestWhereResultsAreWritten(t *testing.T) {
	for name, c := range map[string]struct {
		options options
		whole   bool
		before  []bool // quick runs already saved
		want    string // the file that is written; "" for none
	}{
		"full":              {options{}, true, nil, "bench/results/relay.json"},
		"full over full":    {options{}, true, []bool{false}, "bench/results/relay.json"},
		"a part":            {options{}, false, nil, ""},
		"a part, asked for": {options{Out: "out"}, false, nil, "out/relay.json"},
		"quick":             {options{Quick: true}, true, nil, "bench/results/relay.json"},
		"quick over quick":  {options{Quick: true}, true, []bool{true}, "bench/results/relay.json"},
		"quick over full":   {options{Quick: true}, true, []bool{false}, ""},
		"quick, asked for":  {options{Quick: true, Out: "out"}, true, []bool{false}, "out/relay.json"},
		"Kafka elsewhere":   {options{Brokers: []string{"a:1", "b:2"}}, true, nil, "bench/results/relay-kafka.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			require.NoError(t, os.MkdirAll(defaultOut, 0o755))
			for _, quick := range c.before {
				require.NoError(t, sampleReport(quick).write(defaultOut, "relay", new(bytes.Buffer)))
			}
			r := sampleReport(c.options.Quick)
			r.Seconds = 4711 // marks it
			var out bytes.Buffer
			require.NoError(t, c.options.show(r, c.whole, streams{out: &out}))
			require.Contains(t, out.String(), "GOALS", "the table is printed in any case")
			written := ""
			for _, path := range []string{"bench/results/relay.json", "bench/results/relay-kafka.json", "out/relay.json"} {
				if content, err := os.ReadFile(path); err == nil && bytes.Contains(content, []byte("4711")) {
					written += path
				}
			}
			require.Equal(t, c.want, written)
			require.Contains(t, out.String(), filepath.FromSlash(c.want))
		})
	}
}

func TestRoundsOfTheFlagOrTheDefault(t *testing.T) {
	t.Parallel()
	for want, o := range map[int]options{5: {}, 1: {Quick: true}, 7: {Quick: true, Rounds: 7}} {
		rounds, err := o.rounds()
		require.NoError(t, err)
		require.Equal(t, want, rounds)
	}
}

func TestABenchmarkThatTakesTooLongSaysSo(t *testing.T) {
	t.Parallel()
	o := options{Limit: time.Nanosecond, Dir: t.TempDir()}
	err := o.perform(t.Context(), streams{new(bytes.Buffer), new(bytes.Buffer)}, nil, true, smokePlans["relay"])
	require.Error(t, err)
}

func TestAProgramThatEndsEarlyCutsTheMeasurementShort(t *testing.T) {
	t.Parallel()
	broken := errors.New("no such table")
	err := alongside(t.Context(), func(context.Context) error { return broken }, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	require.ErrorIs(t, err, errEndedEarly)
	require.ErrorIs(t, err, broken)
}

func TestAProgramIsEndedAfterTheMeasurement(t *testing.T) {
	t.Parallel()
	ended := false
	require.NoError(t, alongside(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		ended = true
		return nil
	}, func(context.Context) error { return nil }))
	require.True(t, ended)
}
