package deadletter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox/deadletter"
)

func measured(t *testing.T, pool *pgxpool.Pool) map[string]float64 {
	t.Helper()
	metrics, err := deadletter.Measure(t.Context(), pool, []string{"test", "idle"})
	require.NoError(t, err)
	values := map[string]float64{}
	for _, m := range metrics {
		var read dto.Metric
		require.NoError(t, m.Write(&read))
		name := "waiting"
		if strings.Contains(m.Desc().String(), "oldest_seconds") {
			name = "oldest"
		}
		for _, label := range read.GetLabel() {
			name += " " + label.GetValue()
		}
		values[name] = read.GetGauge().GetValue()
	}
	return values
}

func TestWaitingLettersAreCountedByState(t *testing.T) {
	t.Parallel()
	old, parked, other := letter(1), letter(2), letter(3)
	old.FirstFailedAt = time.Now().Add(-time.Hour)
	parked.Class, parked.FirstFailedAt = deadletter.ClassParked, time.Now()
	other.Consumer = "another"
	store, pool := open(t, old, parked, other)
	got := measured(t, pool)
	require.InDelta(t, 3600, got["oldest test dead"], 60)
	require.Less(t, got["oldest test parked"], 60.0)
	delete(got, "oldest test dead")
	delete(got, "oldest test parked")
	require.Equal(t, map[string]float64{
		"waiting test dead": 1, "waiting test parked": 1,
		"waiting idle dead": 0, "waiting idle parked": 0, "oldest idle dead": 0, "oldest idle parked": 0,
	}, got, "a consumer without dead letters has 0, and is not absent")

	_, err := store.Discard(t.Context(), deadletter.Filter{IDs: []int64{1}}, by)
	require.NoError(t, err)
	got = measured(t, pool)
	require.Zero(t, got["waiting test dead"])
	require.Zero(t, got["oldest test dead"])
}
