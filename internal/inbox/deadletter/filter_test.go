package deadletter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestATimeThatPicksEverythingIsNoCondition(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]Filter{
		"nothing":        {},
		"the zero":       {Since: time.Time{}.UTC(), Until: time.Time{}},
		"since the zero": {Since: time.Unix(0, 0).UTC()},
		"until some day": {Until: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)},
		"until tomorrow": {Since: time.Unix(0, 0), Until: time.Now().Add(24 * time.Hour)},
	} {
		require.False(t, all.Selective(), name)
	}
	for name, some := range map[string]Filter{
		"since":       {Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
		"until":       {Until: time.Now().Add(-time.Minute)},
		"and another": {Until: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), Consumer: "a"},
	} {
		require.True(t, some.Selective(), name)
	}
}
