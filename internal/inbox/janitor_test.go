package inbox_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/inbox"
)

func (b *bundle) janitor(t *testing.T, retention time.Duration, change ...func(*inbox.JanitorConfig)) *inbox.Janitor {
	t.Helper()
	cfg := inbox.JanitorConfig{
		Pool: b.pool, Retention: retention, Log: slog.New(slog.DiscardHandler), Registerer: b.registry,
	}
	for _, f := range change {
		f(&cfg)
	}
	j, err := inbox.NewJanitor(cfg)
	require.NoError(t, err)
	return j
}

// tidy is one round, due or not.
func (b *bundle) tidy(t *testing.T, j *inbox.Janitor) inbox.Round {
	t.Helper()
	b.exec(t, `update inbox_janitor set due_at = 'epoch'`)
	round, err := j.Tidy(t.Context())
	require.NoError(t, err)
	require.True(t, round.Led)
	return round
}

func (b *bundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func TestTheJanitorMakesDaysAheadAndDropsOldOnes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 10)
	b.exec(t, `drop table inbox_`+b.today.AddDate(0, 0, 7).Format("20060102"))
	old := at(b.today.AddDate(0, 0, -6).Add(time.Hour))
	kept := at(b.today.AddDate(0, 0, -5).Add(time.Hour))
	require.NoError(t, b.deliver(t, record(t, old, 1), effect))
	require.NoError(t, b.deliver(t, record(t, kept, 2), effect))
	j := b.janitor(t, 5*day)
	round := b.tidy(t, j)
	require.Equal(t, inbox.Round{Led: true, Created: 1, Dropped: 5}, round)
	require.Equal(t, 5+8+2, b.partitions(t), "five old days, today and seven ahead, foreign and future")
	require.Equal(t, inbox.Round{Led: true}, b.tidy(t, j), "nothing left to do")

	var outcomes []inbox.Outcome
	b.cfg.OnOutcome = func(_ cloudevent.Event, o inbox.Outcome) { outcomes = append(outcomes, o) }
	require.NoError(t, b.deliver(t, record(t, old, 1), effect))
	require.NoError(t, b.deliver(t, record(t, kept, 2), effect))
	require.Equal(t, []inbox.Outcome{inbox.Expired, inbox.Duplicate}, outcomes)
	require.Equal(t, 1, b.effects(t, old.ID), "not applied again although its row is gone")
	require.Equal(t, 1, b.count(t, `select count(*) from dead_letter where code = 'too_old'`))
}

// A longer retention does not bring back what is forgotten.
func TestTheHorizonNeverMovesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.tidy(t, b.janitor(t, day))
	horizon := b.list(t, `select remembers_from::text from inbox_horizon`)
	b.tidy(t, b.janitor(t, 30*day))
	require.Equal(t, horizon, b.list(t, `select remembers_from::text from inbox_horizon`))
	in, old := b.inbox(t), idAt(time.Now().AddDate(0, 0, -9))
	outcome, err := in.Process(t.Context(), old, b.note("x"))
	require.Equal(t, inbox.Expired, outcome)
	require.ErrorIs(t, err, inbox.ErrExpired)
	err = pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		outcome, err := in.MarkProcessed(t.Context(), tx, old)
		require.Equal(t, inbox.Expired, outcome)
		return err
	})
	require.ErrorIs(t, err, inbox.ErrExpired)
}

func TestTheJanitorRefusesToForgetWhatMayComeAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 4)
	reach, failure := 2*day, error(nil)
	j := b.janitor(t, 2*day, func(c *inbox.JanitorConfig) {
		c.Redelivery = func(context.Context) (time.Duration, error) { return reach, failure }
	})
	require.Equal(t, inbox.Round{Led: true, Refused: true}, b.tidy(t, j))
	failure = errors.New("broker away")
	b.exec(t, `update inbox_janitor set due_at = 'epoch'`)
	round, err := j.Tidy(t.Context())
	require.ErrorIs(t, err, failure)
	require.True(t, round.Refused)
	require.Equal(t, 4+8+2, b.partitions(t))
	reach, failure = 2*day-1, nil
	require.Equal(t, inbox.Round{Led: true, Dropped: 2}, b.tidy(t, j))
}

func TestOneJanitorWorksAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.janitor(t, day), b.janitor(t, day)
	round, err := first.Tidy(t.Context())
	require.NoError(t, err)
	require.True(t, round.Led)
	round, err = second.Tidy(t.Context())
	require.NoError(t, err)
	require.False(t, round.Led, "done for this hour")
	b.exec(t, `update inbox_janitor set due_at = 'epoch', lease_until = clock_timestamp() + interval '1 hour'`)
	round, err = second.Tidy(t.Context())
	require.NoError(t, err)
	require.False(t, round.Led, "somebody is at it")
	b.exec(t, `update inbox_janitor set lease_until = clock_timestamp()`)
	round, err = second.Tidy(t.Context())
	require.NoError(t, err)
	require.True(t, round.Led, "that one died")
}

// A janitor that was stopped for longer than its lease changes nothing when it goes on.
func TestADeposedJanitorStops(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 4)
	j := b.janitor(t, day, func(c *inbox.JanitorConfig) {
		c.Redelivery = func(ctx context.Context) (time.Duration, error) {
			_, err := b.pool.Exec(ctx, `update inbox_janitor set epoch = epoch + 1`)
			return 0, err
		}
	})
	b.exec(t, `update inbox_janitor set due_at = 'epoch'`)
	_, err := j.Tidy(t.Context())
	require.ErrorContains(t, err, "took over")
	require.Equal(t, 4+8+2, b.partitions(t))
}

// The rows of a day that had no partition yet go along when it gets one, so their events stay known.
func TestEventsFromTheFutureMoveToTheirDay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.atNoon(t)
	b.tidy(t, b.janitor(t, 3000*day))
	near := b.today.AddDate(0, 0, 7)
	b.exec(t, `drop table inbox_`+near.Format("20060102"))
	soon, far := at(near.Add(time.Hour)), at(near.AddDate(500, 0, 0))
	in := func() []inbox.Outcome {
		var outcomes []inbox.Outcome
		b.cfg.OnOutcome = func(_ cloudevent.Event, o inbox.Outcome) { outcomes = append(outcomes, o) }
		require.NoError(t, b.deliver(t, record(t, soon, 1), effect))
		require.NoError(t, b.deliver(t, record(t, far, 2), effect))
		return outcomes
	}
	require.Equal(t, []inbox.Outcome{inbox.Applied, inbox.Applied}, in())
	require.Equal(t, 2, b.count(t, `select count(*) from inbox_future`))
	require.Equal(t, 1, b.tidy(t, b.janitor(t, day)).Created)
	require.Equal(t, 1, b.count(t, `select count(*) from inbox_future`))
	require.Equal(t, []inbox.Outcome{inbox.Duplicate, inbox.Duplicate}, in())
}

// An event that is on its way into a partition while that one is dropped is not applied without a memory of it.
func TestDroppingWaitsForEventsOnTheirWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 2)
	old := idAt(b.today.AddDate(0, 0, -2).Add(time.Hour))
	in := b.inbox(t)
	_, err := in.Process(t.Context(), old, func(ctx context.Context, tx pgx.Tx) error {
		require.Zero(t, b.tidy(t, b.janitor(t, day)).Dropped, "put off: the inbox is in use")
		return b.note(old)(ctx, tx)
	})
	require.NoError(t, err)
	require.Equal(t, 1, b.count(t, `select count(*) from inbox where event_id = $1`, old))

	// The other way round: it comes while the drop is not committed.
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	for _, sql := range []string{
		`update inbox_horizon set remembers_from = date_trunc('day', now() at time zone 'UTC') at time zone 'UTC'`,
		`drop table inbox_` + b.today.AddDate(0, 0, -2).Format("20060102"),
	} {
		_, err = tx.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	outcome := make(chan inbox.Outcome, 1)
	go func() {
		o, _ := in.Process(context.WithoutCancel(t.Context()), old, b.note(old))
		outcome <- o
	}()
	require.Eventually(t, func() bool {
		return b.count(t, `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`) == 1
	}, waitLimit, pollEvery)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, inbox.Expired, <-outcome)
	require.Equal(t, 1, b.effects(t, old))
}

func TestWhatOutlivesThePartitions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 5)
	b.cfg.Versioned, b.cfg.OnGap = true, inbox.GapPark
	applied, parked := at(b.today.AddDate(0, 0, -4)), at(b.today.AddDate(0, 0, -3))
	applied.Version = 1
	parked.Key, parked.Version = "parked", 9
	foreign, parkedForeign := named("foreign", "f"), named("parked", "parked")
	foreign.Version, parkedForeign.Version = 1, 10
	for i, e := range []cloudevent.Event{applied, parked, foreign, parkedForeign} {
		require.NoError(t, b.deliver(t, record(t, e, int64(i)), effect))
	}
	b.exec(t, `update inbox set processed_at = now() - interval '90 days'`)
	b.exec(t, `insert into inbox_attempt values ('test', 't', 0, 0, 1, now() - interval '90 days')`)
	round := b.tidy(t, b.janitor(t, day))
	require.Equal(t, inbox.Round{Led: true, Dropped: 4, Forgotten: 2}, round, "letters remember by themselves")
	require.Equal(t, []string{"parked"}, b.list(t, `select event_id from inbox`), "a foreign id that waits stays")
	require.Equal(t, 1, b.count(t, `select version from inbox_watermark where key = 'key-1'`))
	require.Zero(t, b.count(t, `select count(*) from inbox_attempt`))

	late := newEvent() // a new id for what the key has passed: the watermark is what knows
	late.Version = 1
	var last inbox.Outcome
	b.cfg.OnOutcome = func(_ cloudevent.Event, o inbox.Outcome) { last = o }
	require.NoError(t, b.deliver(t, record(t, late, 9), effect))
	require.Equal(t, inbox.Stale, last)
}

func TestTheJanitorRunsByItself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.atNoon(t)
	rounds := make(chan inbox.Round, 100)
	j := b.janitor(t, day, func(c *inbox.JanitorConfig) {
		c.Every = 20 * time.Millisecond
		c.OnRound = func(r inbox.Round, err error) {
			if err == nil {
				rounds <- r
			}
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx) }()
	for led := 0; led < 2; {
		if r := <-rounds; r.Led {
			led++
		}
	}
	stop()
	require.NoError(t, <-ended)
	families, err := b.registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		values[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	require.InDelta(t, 8+3, values["inbox_partitions"], 0)
	require.Positive(t, values["inbox_table_bytes"])
	require.Contains(t, values, "inbox_rows")
	require.Contains(t, values, "inbox_oldest_partition_seconds")
}

func TestAJanitorNeedsItsSettings(t *testing.T) {
	t.Parallel()
	_, err := inbox.NewJanitor(inbox.JanitorConfig{Every: -1})
	require.ErrorContains(t, err, "pool")
	require.ErrorContains(t, err, "retention")
}
