package window

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	lost     = "a committed row is never sent"
	twice    = "a row is sent twice, and nothing has failed"
	inverted = "a version is sent before the one below it"
	back     = "the cursor goes back"
)

// The whole protocol holds, and without each of its rules a property breaks.
func TestEachRuleIsNeeded(t *testing.T) {
	t.Parallel()
	for _, run := range []struct {
		without Rule
		bounds  Bounds
		broken  string
		states  int
	}{
		{None, Bounds{Crashes: 1}, "", 74_903},
		{None, Bounds{Freezes: 1}, "", 473_312},
		{KeyLock, Bounds{}, inverted, 2_797},
		{Window, Bounds{}, inverted, 13_635},
		{UpperBound, Bounds{}, twice, 7_893},
		{OneSnapshot, Bounds{}, lost, 12_855},
		{Unfinished, Bounds{}, lost, 3_372},
		{StoreFirst, Bounds{Crashes: 1}, inverted, 26_672},
		{Epoch, Bounds{Freezes: 1}, back, 58_005},
		{OneUpdate, Bounds{Freezes: 1}, back, 143_512},
		{FreeLock, Bounds{Crashes: 1}, lost, 3_590},
	} {
		t.Run("without "+string(run.without), func(t *testing.T) {
			t.Parallel()
			found := Explore(run.without, run.bounds)
			t.Log(strings.Join(found.Trace, "\n"))
			require.Equal(t, run.broken, found.Broken)
			require.Equal(t, run.states, found.States)
		})
	}
}
