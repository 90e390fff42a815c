package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A result of a part, or of a quick run, never takes the place of a full one unless a folder is named for it.
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
		"Kafka elsewhere":   {options{Brokers: "a:1,b:2"}, true, nil, "bench/results/relay-kafka.json"},
		"quick, another one's full": {
			options{Quick: true, Brokers: "a:1"}, true, []bool{false}, "bench/results/relay-kafka.json",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			require.NoError(t, os.MkdirAll(defaultOut, 0o755))
			for _, quick := range c.before {
				require.NoError(t, writeReport(sampleReport(quick), defaultOut, "relay", new(bytes.Buffer)))
			}
			r := sampleReport(c.options.Quick)
			r.Seconds = 4711 // so that it is known again
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
			if c.want != "" {
				require.Contains(t, out.String(), filepath.FromSlash(c.want), "it says where")
			}
		})
	}
	require.Equal(t, []string{"a:1", "b:2"}, options{Brokers: "a:1,b:2"}.brokers())
	require.Empty(t, options{}.brokers(), "a broker in this process")
}

func TestRoundsOfTheFlagOrThePlan(t *testing.T) {
	t.Parallel()
	for flag, want := range map[int]int{0: 5, 1: 1, 7: 7} {
		rounds, err := options{Rounds: flag}.rounds(5)
		require.NoError(t, err)
		require.Equal(t, want, rounds)
	}
}

// What was measured is shown even when something could not be put away; what was not measured is not.
func TestAResultIsShownOnceItIsThere(t *testing.T) {
	t.Parallel()
	broken := errors.New("could not drop the database")
	perform := func(r *relayReport, err error) (string, error) {
		var out bytes.Buffer
		err = perform(t.Context(), options{Limit: time.Hour, Out: t.TempDir()}, true, streams{out: &out},
			func(context.Context) (*relayReport, error) { return r, err })
		return out.String(), err
	}
	shown, err := perform(sampleReport(false), nil)
	require.NoError(t, err)
	require.Contains(t, shown, "written: ")
	shown, err = perform(sampleReport(false), broken)
	require.ErrorIs(t, err, broken)
	require.Contains(t, shown, "written: ")
	shown, err = perform(nil, broken)
	require.ErrorIs(t, err, broken)
	require.Empty(t, shown)
}

func TestABenchmarkThatTakesTooLongSaysSo(t *testing.T) {
	t.Parallel()
	ctx, cancel := options{Limit: time.Nanosecond}.limited(t.Context())
	defer cancel()
	<-ctx.Done()
	require.EqualError(t, context.Cause(ctx), "took longer than 1ns")
}
