//go:build !faults

package fault_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/fault"
)

func TestWithoutTheTagAPointCostsNothing(t *testing.T) {
	require.False(t, fault.Enabled)
	require.Zero(t, testing.AllocsPerRun(100, func() { fault.Here("any") }))
}
