//go:build faults

package fault_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/fault"
)

func TestAnArmedPointRuns(t *testing.T) {
	t.Parallel()
	ran, before := 0, fault.Hits("test.each")
	fault.Arm("test.each", func() { ran++ })
	fault.Here("test.each")
	fault.Here("test.each")
	fault.Disarm("test.each")
	fault.Here("test.each")
	require.Equal(t, 2, ran)
	require.Equal(t, 3, fault.Hits("test.each")-before)
}

func TestAPointArmedForTheNthTimeRunsOnce(t *testing.T) {
	t.Parallel()
	fault.Here("test.nth")
	ran := 0
	fault.ArmNth("test.nth", 2, func() { ran++ })
	for range 4 {
		fault.Here("test.nth")
	}
	require.Equal(t, 1, ran)
}
