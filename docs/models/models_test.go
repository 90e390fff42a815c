package main

import (
	"flag"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var states = flag.Int("models.states", 100_000, "explore the runs with up to so many states")

// make test-models has the rest.
func TestRuns(t *testing.T) {
	t.Parallel()
	for _, r := range allRuns() {
		if r.states > *states {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			found := r.explore()
			require.Equal(t, r.broken, found.broken)
			require.Equal(t, r.states, found.states)
		})
	}
}

// A step that no mutant leaves out may be needless.
func TestEachStepHasAMutant(t *testing.T) {
	t.Parallel()
	for i := range reflect.TypeFor[omitted]().NumField() {
		step := reflect.TypeFor[omitted]().Field(i).Name
		found := false
		for _, r := range runs() {
			found = found || r.broken != "" && reflect.ValueOf(r.omit).Field(i).Bool()
		}
		require.True(t, found, step)
	}
}

func TestEachStepOfTheSmallModelsIsLeftOut(t *testing.T) {
	t.Parallel()
	for i := range reflect.TypeFor[windowOmitted]().NumField() {
		require.True(t, slices.ContainsFunc(windowRuns(), func(r windowRun) bool {
			return reflect.ValueOf(r.omit).Field(i).Bool()
		}), reflect.TypeFor[windowOmitted]().Field(i).Name)
	}
	for i := range reflect.TypeFor[leaderOmitted]().NumField() {
		require.True(t, slices.ContainsFunc(leaderRuns(), func(r leaderRun) bool {
			return reflect.ValueOf(r.omit).Field(i).Bool()
		}), reflect.TypeFor[leaderOmitted]().Field(i).Name)
	}
}

func TestPrintRuns_ShowsTheShortestTrace(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	require.NoError(t, printRuns(&printed, "mut-no-idle", false, false))
	require.Contains(t, printed.String(), `
  BROKEN after 2181 states: D2: a1#1 is never applied
   1. start
   2. commit a1#1 at position 0
`)
	require.Contains(t, printed.String(), "BROKER loses all from 0/0 on")
}

func TestFindCycle(t *testing.T) {
	t.Parallel()
	_, found := findCycle([][]int32{{1, 2}, {2}, {}})
	require.False(t, found, "two ways to one state are no cycle")
	_, found = findCycle([][]int32{{1}, {2}, {1}})
	require.True(t, found)
}
