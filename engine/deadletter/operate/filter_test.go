package operate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestATimeThatPicksEverythingIsNoCondition(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]Filter{
		"nothing":        {},
		"the zero":       {From: time.Time{}.UTC(), To: time.Time{}},
		"since the zero": {From: time.Unix(0, 0).UTC()},
		"until some day": {To: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)},
		"until tomorrow": {From: time.Unix(0, 0), To: time.Now().Add(24 * time.Hour)},
	} {
		require.False(t, all.Selective(), name)
	}
	for name, some := range map[string]Filter{
		"since":       {From: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
		"until":       {To: time.Now().Add(-time.Minute)},
		"and another": {To: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), Consumer: "a"},
	} {
		require.True(t, some.Selective(), name)
	}
}
