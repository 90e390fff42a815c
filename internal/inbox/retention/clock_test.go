package retention_test

import (
	"bytes"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox/retention"
	"example.com/twinbox/test/inboxtest"
)

const far = 12 * day // beyond the retention of these tests

func TestNoSingleClockMovesTheHorizon(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]struct{ database, process time.Duration }{
		"database ahead":  {far, 0},
		"database behind": {-far, 0},
		"process ahead":   {0, far},
		"process behind":  {0, -far},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.split(t, 12)
			known := b.fill(t, -9, 6) // some producers' clocks are ahead
			j := b.janitor(t, 10*day)
			b.tidy(t, j)
			require.Equal(t, -10, b.horizon(t))
			last := "inbox_" + b.today.AddDate(0, 0, 7).Format("20060102")
			b.Exec(t, `drop table `+last)

			b.moveDatabase(t, wrong.database)
			b.process = wrong.process
			for range 5 {
				b.tidy(t, j)
			}
			require.Equal(t, -10, b.horizon(t))
			require.Equal(t, 1, b.Count(t, `select count(*) from pg_class where relname = $1`, last), "a day that it needs")
			known = append(known, b.fill(t, 0, 0)...)

			b.moveDatabase(t, 0)
			b.process = 0
			b.tidy(t, j)
			require.Equal(t, -10, b.horizon(t))
			b.fill(t, -9, 7)
			require.Equal(t, slices.Repeat([]string{"duplicate"}, len(known)), b.outcomes(t, known...))
			require.Zero(t, b.Count(t, `select count(*) from inbox_future`))
		})
	}
}

// Both clocks jump, as on a single host.
func TestTwoWrongClocksForgetNoMoreDaysThanWereSeen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 12)
	j := b.janitor(t, 10*day)
	b.moveDatabase(t, far)
	b.process = far
	for range 5 {
		b.tidy(t, j)
	}
	require.Equal(t, -10, b.horizon(t))
	b.fill(t, 12, 12)
	for range 5 {
		b.tidy(t, j)
	}
	require.Equal(t, -9, b.horizon(t), "one more day for one more day")

	b.moveDatabase(t, 0)
	b.process = 0
	b.tidy(t, j)
	b.fill(t, -9, 7)
	require.Equal(t, -9, b.horizon(t))
	require.Zero(t, b.Count(t, `select count(*) from inbox_future`))
}

func TestEventsFromTheFutureMoveNoHorizon(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 12)
	j := b.janitor(t, 10*day)
	b.fill(t, 1, 40)
	b.tidy(t, j)
	require.Equal(t, -10, b.horizon(t))
}

func TestAWrongClockAtTheInstallation(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ahead": far, "behind": -far} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := install(t, ahead)
			j := b.janitor(t, 10*day)
			known := b.fill(t, -7, 0)
			b.tidy(t, j)
			known = append(known, b.fill(t, -7, 7)...)
			b.moveDatabase(t, 0)
			for range 3 {
				b.tidy(t, j)
			}
			known = append(known, b.fill(t, -7, 7)...)
			require.Equal(t, slices.Repeat([]string{"duplicate"}, len(known)), b.outcomes(t, known...))

			for range 27 {
				b.nextDay(t)
				b.tidy(t, j)
				b.fill(t, 0, 0)
			}
			b.tidy(t, j)
			require.Equal(t, -10, b.horizon(t), "it forgets as if the clock had been right")
			require.Equal(t, slices.Repeat([]string{"expired"}, len(known)), b.outcomes(t, known...))
			require.Zero(t, b.Count(t, `select count(*) from inbox_future`))
			require.LessOrEqual(t, b.partitions(t), 10+1+7+2)
		})
	}
}

func TestAnIdleInbox(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 12)
	j := b.janitor(t, 10*day)
	b.tidy(t, j)
	partitions := b.partitions(t)
	known := b.fill(t, 0, 0)
	for range 15 {
		b.nextDay(t)
		b.tidy(t, j)
	}
	require.Equal(t, -25, b.horizon(t))
	require.Equal(t, b.partitions(t), partitions+11, "empty days are dropped after the retention")
	require.Equal(t, []string{"duplicate"}, b.outcomes(t, known...))
	b.fill(t, -12, -12) // a late event of a dropped day
	b.fill(t, -9, 0)
	b.tidy(t, j)
	require.Equal(t, -15, b.horizon(t), "of the days with events the ten newest and today's stay")
}

func TestIDsWithoutATimeThatAWrongClockDated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 12)
	j := b.janitor(t, 10*day)
	b.moveDatabase(t, -far)
	require.Equal(t, []string{"applied"}, b.outcomes(t, "foreign"))
	b.moveDatabase(t, 0)
	require.Zero(t, b.tidy(t, j).Forgotten)
	require.Equal(t, []string{"duplicate"}, b.outcomes(t, "foreign"))

	b.Exec(t, `update inbox set metadata = jsonb_set(metadata, '{processing_time}', '"2020-01-01T00:00:00Z"')
		where event_id = 'foreign'`)
	require.Equal(t, 1, b.tidy(t, j).Forgotten, "both clocks call it old")
}

func TestIDsWithoutATimeCountTheirDays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 12)
	b.Exec(t, `delete from inbox`)
	b.Exec(t, `insert into inbox (consumer, event_id, event_time, event_type, payload_hash, processed_at)
		select 'c', 'id-' || n, 'epoch', 't', '', $1::timestamptz - n * interval '1 day' from generate_series(0, 12) n`,
		b.today.Add(time.Hour))
	require.Equal(t, 2, b.tidy(t, b.janitor(t, 10*day)).Forgotten)
	require.Equal(t, -10, b.horizon(t))
}

func TestTheJanitorLogsClocksThatDiffer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var log bytes.Buffer
	j := b.janitor(t, day, func(c *retention.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	b.tidy(t, j)
	require.NotContains(t, log.String(), "clocks")
	b.process = -2 * time.Hour
	b.tidy(t, j)
	require.Contains(t, log.String(), "the clocks of the database and of this process differ")
}

func TestADayWithEventsIsNotDroppedBeforeTheHorizon(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fill(t, 0, 0)
	_, err := b.Pool.Exec(t.Context(), `select inbox_drop_day($1)`, "inbox_"+b.today.Format("20060102"))
	require.ErrorContains(t, err, "not forgotten yet")
	_, err = b.Pool.Exec(t.Context(), `select inbox_drop_day($1)`, "inbox_past")
	require.NoError(t, err, "it is empty")
	require.Equal(t, []string{"applied"}, b.outcomes(t, inboxtest.IDAt(b.today.AddDate(-1, 0, 0))))
}
