package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/contracttest"
)

func TestStatusesAreTheContracts(t *testing.T) {
	t.Parallel()
	documented := contracttest.ProblemStatuses(t)
	for code, status := range statuses {
		require.Equal(t, documented[string(code)], status, code)
	}
}
