package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStepsRunInOrderUntilOneFails(t *testing.T) {
	t.Parallel()
	var ran []string
	do := func(name string, err error) step {
		return step{name: name, weight: 1, run: func(context.Context) error {
			ran = append(ran, name)
			<-time.After(3 * time.Second) // by the bubble's clock
			return err
		}}
	}
	steps := []step{do("a", nil), do("b", errors.New("broken")), do("c", nil)}
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.EqualError(t, runSteps(t.Context(), streams{err: &out}, steps, 0), "b: broken")
		require.Equal(t, []string{"a", "b"}, ran)
		require.Equal(t, "  0 %     0s  a\n 33 %     3s  b\n", out.String(), "a line per step without a terminal")
	})
}

func TestStepsStopWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("Ctrl-C")
	err := runSteps(ctx, streams{err: new(bytes.Buffer)}, []step{
		{name: "a", run: func(context.Context) error { cancel(stopped); return nil }},
		{name: "b", run: func(context.Context) error { panic("must not run") }},
	}, 0)
	require.ErrorIs(t, err, stopped)
}

func TestBarIsDrawnOverItselfOnATerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProgress(streams{err: &out, terminal: true}, []step{{name: "a", weight: 3}, {name: "b", weight: 1}})
		p.done = 3
		p.show("b")
		require.Equal(t, "\r██████████████████████░░░░░░░░  75 %     0s  b\x1b[K", out.String())
		out.Reset()
		p.end()
		require.Equal(t, "\r\x1b[K", out.String())
	})
}

func TestVariantsTakeTurnsInBeingFirst(t *testing.T) {
	t.Parallel()
	var names []string
	for _, s := range interleave("x", 3, func(int) []step { return []step{{name: "a"}, {name: "b"}} }) {
		names = append(names, s.name)
	}
	require.Equal(t, []string{"x 1/3: a", "x 1/3: b", "x 2/3: b", "x 2/3: a", "x 3/3: a", "x 3/3: b"}, names)
}

func TestSpareStepsAreLeftOutWhenTimeIsShort(t *testing.T) {
	t.Parallel()
	var ran []string
	do := func(name string, spare bool) step {
		return step{name: name, spare: spare, run: func(context.Context) error {
			ran = append(ran, name)
			return nil
		}}
	}
	steps := []step{do("first", false), do("again", true), do("other", false)}
	require.NoError(t, runSteps(t.Context(), streams{err: new(bytes.Buffer)}, steps, time.Nanosecond))
	require.Equal(t, []string{"first", "other"}, ran, "every measurement keeps one round")
}

func TestQuickRunDoesEverythingOnceFirst(t *testing.T) {
	t.Parallel()
	b := &relayBench{plan: quickPlan}
	again := false
	for _, s := range b.steps(nil) {
		require.False(t, again && !s.spare, s.name)
		again = again || s.spare
	}
	require.True(t, again)
}
