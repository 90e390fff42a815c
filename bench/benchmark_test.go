package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
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
		require.EqualError(t, b.runSteps(t.Context(), &out, steps), "b: broken")
		require.Equal(t, []string{"a", "b"}, ran)
		require.Equal(t, "  1 of 3     0s  a\n  2 of 3     3s  b\n", out.String())
	})
}

func TestStepsStopWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("Ctrl-C")
	err := (&benchmark{sheet: newSheet()}).runSteps(ctx, io.Discard, []step{
		{"a", func(context.Context) error { cancel(stopped); return nil }},
		{"b", func(context.Context) error { panic("must not run") }},
	})
	require.ErrorIs(t, err, stopped)
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
	for name, b := range smokes() {
		for _, p := range b.parts {
			_, err := (&options{Benchmark: name, Only: []string{p.name}}).benchmark()
			require.NoError(t, err, "%s %s", name, p.name)
		}
	}
}

func TestWhereResultsAreWritten(t *testing.T) {
	for name, c := range map[string]struct {
		options options
		want    string // the file that is written; "" for none
	}{
		"full":              {options{}, "bench/results/relay.json"},
		"a part":            {options{Only: []string{"drain"}}, ""},
		"a part, asked for": {options{Only: []string{"drain"}, Out: "out"}, "out/relay.json"},
		"quick":             {options{Quick: true}, ""},
		"quick, asked for":  {options{Quick: true, Out: "out"}, "out/relay.json"},
		"Kafka elsewhere":   {options{Brokers: []string{"a:1", "b:2"}}, "bench/results/relay-kafka.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			var out bytes.Buffer
			require.NoError(t, c.options.show(sampleReport(c.options.Quick), &out))
			require.Contains(t, out.String(), "GOALS", "the table is printed in any case")
			written, err := filepath.Glob("*/*.json")
			require.NoError(t, err)
			inResults, err := filepath.Glob("bench/results/*.json")
			require.NoError(t, err)
			require.Equal(t, c.want, filepath.ToSlash(strings.Join(append(written, inResults...), " ")))
			require.Contains(t, out.String(), filepath.FromSlash(c.want))
		})
	}
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
