package inbox_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func TestARecordOfAnyTimeCanBeGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	lastDay := time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	for i, row := range []struct {
		at   time.Time
		kept *time.Time
	}{
		{now, &now},
		{lastDay, &lastDay},
		{time.Time{}, nil},
		{lastDay.AddDate(0, 0, 1), nil},
		{time.Date(294277, 1, 1, 0, 0, 0, 0, time.UTC), nil}, // the first that PostgreSQL does not have
		{time.UnixMilli(math.MaxInt64), nil},
		{time.UnixMilli(math.MinInt64), nil},
	} {
		msg := record(t, newEvent(), int64(i))
		msg.UUID = ""
		origin, _ := event.OriginFrom(msg.Context())
		origin.Time = row.at
		msg.SetContext(event.WithOrigin(t.Context(), origin))
		require.NoError(t, b.Deliver(t, msg, effect))
		var kept *time.Time
		require.NoError(t, b.Pool.QueryRow(t.Context(),
			`select record_time at time zone 'UTC' from dead_letter where record_offset = $1`, i).Scan(&kept))
		require.Equal(t, row.kept, kept, "%s", row.at)
	}
}
