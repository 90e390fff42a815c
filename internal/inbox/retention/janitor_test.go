package retention_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/retention"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestTheJanitorMakesDaysAheadAndDropsOldOnes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 10)
	b.Exec(t, `drop table inbox_`+b.today.AddDate(0, 0, 7).Format("20060102"))
	old := inboxtest.At(b.today.AddDate(0, 0, -6).Add(time.Hour))
	kept := inboxtest.At(b.today.AddDate(0, 0, -5).Add(time.Hour))
	require.NoError(t, b.Deliver(t, inboxtest.Record(t, old, 1), inboxtest.Effect))
	require.NoError(t, b.Deliver(t, inboxtest.Record(t, kept, 2), inboxtest.Effect))
	j := b.janitor(t, 5*day)
	round := b.tidy(t, j)
	require.Equal(t, retention.Round{Created: 1, Dropped: 5}, round)
	require.Equal(t, 5+8+2, b.partitions(t), "five old days, today and seven ahead, foreign and future")
	require.Equal(t, retention.Round{}, b.tidy(t, j), "nothing left to do")

	var outcomes []inbox.Outcome
	b.Host.OnOutcome = func(_ event.Event, o inbox.Outcome) { outcomes = append(outcomes, o) }
	require.NoError(t, b.Deliver(t, inboxtest.Record(t, old, 1), inboxtest.Effect))
	require.NoError(t, b.Deliver(t, inboxtest.Record(t, kept, 2), inboxtest.Effect))
	require.Equal(t, []inbox.Outcome{inbox.Expired, inbox.Duplicate}, outcomes)
	require.Equal(t, 1, b.Effects(t, old.ID), "not applied again although its row is gone")
	require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter where code = 'too_old'`))
}

func TestEveryStatementOfARoundHasADeadline(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 10)
	round := b.tidy(t, b.janitor(t, 5*day, func(cfg *retention.Config) { cfg.Pool = pgtest.Bounded(t, b.Pool) }))
	require.Positive(t, round.Dropped)
}

func TestTheHorizonNeverMovesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 3)
	b.tidy(t, b.janitor(t, day))
	horizon := b.List(t, `select remembers_from::text from inbox_horizon`)
	b.tidy(t, b.janitor(t, 30*day))
	require.Equal(t, horizon, b.List(t, `select remembers_from::text from inbox_horizon`))
	in, old := b.Inbox(t), inboxtest.IDAt(time.Now().AddDate(0, 0, -9))
	outcome, err := in.Process(t.Context(), old, b.Note("x"))
	require.Equal(t, inbox.Expired, outcome)
	require.ErrorIs(t, err, inbox.ErrExpired)
	err = pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
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
	registry, log := prometheus.NewRegistry(), &bytes.Buffer{}
	j := b.janitor(t, 2*day, func(c *retention.Config) {
		c.Registerer, c.Log = registry, slog.New(slog.NewTextHandler(log, nil))
		c.Check = retention.Requirements{
			Retention: 2 * day, Topics: []string{"first", "second"},
			TopicRetention: func(context.Context, string) (time.Duration, error) { return reach, failure },
		}.Check
	})
	require.Equal(t, retention.Round{Refused: true}, b.tidy(t, j))
	require.InDelta(t, 1, gauges(t, registry)["inbox_janitor_refused"], 0)
	require.Regexp(t, `topic first could .* topic second could`, log.String())
	failure = errors.New("broker away")
	round, err := j.Tidy(t.Context())
	require.ErrorIs(t, err, failure)
	require.True(t, round.Refused)
	require.Equal(t, 4+8+2, b.partitions(t))
	reach, failure = 2*day-1, nil
	require.Equal(t, retention.Round{Dropped: 2}, b.tidy(t, j))
	require.InDelta(t, 0, gauges(t, registry)["inbox_janitor_refused"], 0)
}

func TestOneJanitorWorksAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 4)
	b.Exec(t, `drop table inbox_`+b.today.AddDate(0, 0, 7).Format("20060102"))
	j := b.janitor(t, day)
	err := pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `select pg_advisory_xact_lock(hashtextextended('inbox/janitor', 0))`)
		require.NoError(t, err)
		require.Equal(t, retention.Round{}, b.tidy(t, j), "a different janitor is at work")
		return nil
	})
	require.NoError(t, err)

	var total retention.Round
	rounds := make(chan retention.Round)
	for range 4 {
		go func() {
			round, err := b.janitor(t, day).Tidy(t.Context())
			if err != nil {
				t.Error(err)
			}
			rounds <- round
		}()
	}
	for range 4 {
		round := <-rounds
		total.Created, total.Dropped = total.Created+round.Created, total.Dropped+round.Dropped
	}
	round := b.tidy(t, j)
	total.Created, total.Dropped = total.Created+round.Created, total.Dropped+round.Dropped
	require.Equal(t, retention.Round{Created: 1, Dropped: 3}, total)
	require.Equal(t, 1+8+2, b.partitions(t))
}

func TestEventsFromTheFutureMoveToTheirDay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.tidy(t, b.janitor(t, 3000*day))
	near := b.today.AddDate(0, 0, 7)
	b.Exec(t, `drop table inbox_`+near.Format("20060102"))
	soon, far := inboxtest.At(near.Add(time.Hour)), inboxtest.At(near.AddDate(500, 0, 0))
	in := func() []inbox.Outcome {
		var outcomes []inbox.Outcome
		b.Host.OnOutcome = func(_ event.Event, o inbox.Outcome) { outcomes = append(outcomes, o) }
		require.NoError(t, b.Deliver(t, inboxtest.Record(t, soon, 1), inboxtest.Effect))
		require.NoError(t, b.Deliver(t, inboxtest.Record(t, far, 2), inboxtest.Effect))
		return outcomes
	}
	require.Equal(t, []inbox.Outcome{inbox.Applied, inbox.Applied}, in())
	require.Equal(t, 2, b.Count(t, `select count(*) from inbox_future`))
	require.Equal(t, 1, b.tidy(t, b.janitor(t, day)).Created)
	require.Equal(t, 1, b.Count(t, `select count(*) from inbox_future`))
	require.Equal(t, []inbox.Outcome{inbox.Duplicate, inbox.Duplicate}, in())
}

func TestDroppingWaitsForEventsOnTheirWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 2)
	old := inboxtest.IDAt(b.today.AddDate(0, 0, -2).Add(time.Hour))
	in := b.Inbox(t)
	_, err := in.Process(t.Context(), old, func(ctx context.Context, tx pgx.Tx) error {
		require.Zero(t, b.tidy(t, b.janitor(t, day)).Dropped, "put off: the inbox is in use")
		return b.Note(old)(ctx, tx)
	})
	require.NoError(t, err)
	require.Equal(t, 1, b.Count(t, `select count(*) from inbox where event_id = $1`, old))

	// The reverse: the event comes before the drop is committed.
	tx, err := b.Pool.Begin(t.Context())
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
		o, _ := in.Process(context.WithoutCancel(t.Context()), old, b.Note(old))
		outcome <- o
	}()
	testkit.Until(t, func() bool {
		return b.Count(t, `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`) == 1
	})
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, inbox.Expired, <-outcome)
	require.Equal(t, 1, b.Effects(t, old))
}

func TestWhatOutlivesThePartitions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 5)
	b.Config.Order = inbox.Strict
	applied, parked := inboxtest.At(b.today.AddDate(0, 0, -4)), inboxtest.At(b.today.AddDate(0, 0, -3))
	applied.Version = 1
	parked.Key, parked.Version = "parked", 9
	foreign, parkedForeign := inboxtest.Named("foreign", "f"), inboxtest.Named("parked", "parked")
	foreign.Version, parkedForeign.Version = 1, 10
	for i, e := range []event.Event{applied, parked, foreign, parkedForeign} {
		require.NoError(t, b.Deliver(t, inboxtest.Record(t, e, int64(i)), inboxtest.Effect))
	}
	b.Exec(t, `update inbox set processed_at = now() - interval '90 days',
		metadata = metadata || '{"processing_time": "2020-01-01T00:00:00Z"}'`)
	b.Exec(t, `insert into inbox_attempt values ('test', 't', 0, 0, 0, 1, now() - interval '90 days')`)
	round := b.tidy(t, b.janitor(t, day))
	require.Equal(t, retention.Round{Dropped: 4, Forgotten: 2}, round, "dead letters remember by themselves")
	require.Equal(t, 2, b.Count(t, `select count(*) from dead_letter where state = 'waiting'`))
	require.Equal(t, 1, b.Count(t, `select version from inbox_key where key = 'key-1'`))
	require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))

	late := inboxtest.NewEvent()
	late.Version = 1
	var last inbox.Outcome
	b.Host.OnOutcome = func(_ event.Event, o inbox.Outcome) { last = o }
	require.NoError(t, b.Deliver(t, inboxtest.Record(t, late, 9), inboxtest.Effect))
	require.Equal(t, inbox.Stale, last)
}

func TestTheJanitorRunsByItself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.janitor(t, day, func(c *retention.Config) {
		c.Every, c.Registerer = 20*time.Millisecond, b.Registry
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx) }()
	testkit.Until(t, func() bool { return gauges(t, b.Registry)["inbox_partitions"] == 8+3 })
	for range 2 {
		b.Exec(t, `insert into inbox (consumer, event_id, event_time, event_type, payload_hash, processed_at)
			values ('test', 'id', 'epoch', 't', '', '1999-01-01')`)
		testkit.Until(t, func() bool { return b.Count(t, `select count(*) from inbox`) == 0 })
	}
	stop()
	require.NoError(t, <-ended)
	require.Positive(t, gauges(t, b.Registry)["inbox_table_bytes"])
}

func gauges(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		values[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	return values
}

func TestAJanitorNeedsItsSettings(t *testing.T) {
	t.Parallel()
	_, err := retention.New(retention.Config{Every: -1})
	require.ErrorContains(t, err, "pool")
	require.ErrorContains(t, err, "retention")
}

func TestTheJanitorGivesWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 4)
	b.Exec(t, `drop table inbox_`+b.today.AddDate(0, 0, 7).Format("20060102"))
	limits := b.watchLimits(t)
	var log bytes.Buffer
	j := b.janitor(t, day, func(c *retention.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	in := b.Inbox(t)

	busy, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = busy.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = busy.Exec(t.Context(), `lock table inbox in row exclusive mode`)
	require.NoError(t, err)
	patient, cancel := context.WithTimeout(t.Context(), inboxtest.WaitLimit)
	defer cancel()
	group, ctx := errgroup.WithContext(patient)
	var round retention.Round
	group.Go(func() (err error) {
		round, err = j.Tidy(ctx)
		return err
	})
	other := inboxtest.NewEvent().ID
	group.Go(func() error {
		_, err := in.Process(ctx, other, b.Note(other))
		return err
	})
	require.NoError(t, group.Wait())
	require.Equal(t, retention.Round{}, round)
	const putOff = `the inbox is in use, the next round tries again" change=`
	require.Contains(t, log.String(), putOff+`"create the inbox partition of `)
	require.Contains(t, log.String(), putOff+`"drop inbox_`)
	require.Equal(t, 1, b.Effects(t, other), "others write meanwhile")

	require.NoError(t, busy.Rollback(t.Context()))
	require.Equal(t, retention.Round{Created: 1, Dropped: 3}, b.tidy(t, j), "at the next round")
	require.Equal(t, []string{
		"CREATE TABLE 500ms", "ALTER TABLE 500ms", "DROP TABLE 500ms", "DROP TABLE 500ms", "DROP TABLE 500ms",
	}, limits())
}

func (b *bundle) watchLimits(t *testing.T) func() []string {
	t.Helper()
	b.Exec(t, `
		create table public.limits (n int generated always as identity, limited text);
		create function public.note_limit() returns event_trigger language plpgsql as $$
		begin
			insert into public.limits (limited) values (tg_tag || ' ' || current_setting('lock_timeout'));
		end $$;
		create event trigger note_limit on ddl_command_start execute function public.note_limit()`)
	return func() []string { return b.List(t, `select limited from public.limits order by n`) }
}

func requirements(kept time.Duration, err error) retention.Requirements {
	return retention.Requirements{
		Retention: 9 * day, Slack: day, Topics: []string{"first", "second"},
		TopicRetention: func(_ context.Context, topic string) (time.Duration, error) {
			if topic == "first" {
				return day, nil
			}
			return kept, err
		},
	}
}

func TestATopicMustForgetBeforeTheInbox(t *testing.T) {
	t.Parallel()
	require.NoError(t, requirements(8*day-1, nil).Check(t.Context()))
	for _, kept := range []time.Duration{8 * day, -1, math.MaxInt64} {
		err := requirements(kept, nil).Check(t.Context())
		require.EqualError(t, err, "inbox requirement retention_too_short: an event of the topic second could come "+
			"again after the inbox has forgotten it: set the topic's cleanup.policy to delete and "+
			"its retention.ms below 691200000 (192h0m0s)")
		_, is := errors.AsType[*retention.Violation](err)
		require.True(t, is)
	}
	away := errors.New("broker away")
	err := requirements(0, away).Check(t.Context())
	require.ErrorIs(t, err, away)
	_, is := errors.AsType[*retention.Violation](err)
	require.False(t, is, "another call may succeed")
}
