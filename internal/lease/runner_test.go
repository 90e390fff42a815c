package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

var quick = Settings{
	Poll: 10 * time.Millisecond, MaxAttempts: 3, RetryMin: 10 * time.Millisecond, RetryMax: 20 * time.Millisecond,
}

func TestTheEffectsErrorDecides(t *testing.T) {
	t.Parallel()
	no := errors.New("no " + strings.Repeat("and no ", 150_000))
	for name, row := range map[string]struct {
		before, after error // Begin
		panics        bool
		want          State
		attempts      int
	}{
		"done":                        {want: Done, attempts: 1},
		"fails before it begins":      {before: no, want: Failed, attempts: 3},
		"refused before it begins":    {before: failure.AsPermanent(no), want: Failed, attempts: 1},
		"skipped before it begins":    {before: fmt.Errorf("look up: %w", Skip("blocked")), want: Skipped, attempts: 1},
		"skipped without the mark":    {after: Skip("blocked"), want: Uncertain, attempts: 1},
		"skipped, and certainly not":  {after: Undone(Skip("blocked")), want: Skipped, attempts: 1},
		"breaks off":                  {after: no, want: Uncertain, attempts: 1},
		"breaks off for good":         {after: failure.AsPermanent(no), want: Uncertain, attempts: 1},
		"the connection is cut":       {after: failure.AsTransient(no), want: Uncertain, attempts: 1},
		"certainly not, for now":      {after: Undone(no), want: Failed, attempts: 3},
		"certainly not, and for good": {after: Undone(failure.AsPermanent(no)), want: Failed, attempts: 1},
		"panics":                      {panics: true, want: Uncertain, attempts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, quick)
			b.add(t, "e1")
			b.run(t, b.leases, Effect{Do: func(ctx context.Context, c *Claim) error {
				if row.before != nil {
					return row.before
				}
				if err := c.Begin(ctx); err != nil {
					return err
				}
				if row.panics {
					panic("at the worst moment")
				}
				return row.after
			}})
			b.await(t, "e1", row.want)
			require.Equal(t, row.attempts, b.count(t, `select attempts from lease`))
			require.Less(t, b.count(t, `select length(coalesce(error, '')) from lease`), failure.MaxText+50)
		})
	}
}

func TestASkippedEffectIsNoError(t *testing.T) {
	t.Parallel()
	b := setup(t, quick)
	var log bytes.Buffer
	b.leases.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	b.add(t, "e1")
	stop := b.run(t, b.leases, Effect{Do: func(context.Context, *Claim) error { return Skip("the recipient is blocked") }})
	b.await(t, "e1", Skipped)
	stop()
	require.Contains(t, log.String(), `level=INFO msg="effect skipped"`)
	require.NotContains(t, log.String(), "level=ERROR")
	require.InDelta(t, 1, testutil.ToFloat64(b.leases.metrics.attempts.WithLabelValues("skipped")), 0)
	require.Equal(t, 1, b.count(t, `select count(*) from lease where error = 'the recipient is blocked'`))
	require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		return Reopen(t.Context(), tx, "test", []string{"e1"})
	}))
	require.Equal(t, Pending, b.state(t, "e1"), "an operator may have it tried again")
}

func TestAnUnreachableOtherSideUsesUpNoAttempt(t *testing.T) {
	t.Parallel()
	settings := quick
	settings.MaxAttempts = 1
	b := setup(t, settings)
	b.add(t, "e1", "e2")
	asked, back := make(chan struct{}), make(chan struct{})
	b.run(t, b.leases, Effect{Do: func(ctx context.Context, c *Claim) error {
		select {
		case <-back:
			return c.Begin(ctx)
		case asked <- struct{}{}:
			return failure.AsTransient(errors.New("connection refused"))
		}
	}})
	for range 6 {
		<-asked
	}
	close(back)
	b.await(t, "e1", Done)
	b.await(t, "e2", Done)
	require.Equal(t, 2, b.count(t, `select count(*) from lease where attempts = 1`))
}

// Time passes only in the row, so a slow machine loses no lease.
func TestAnEffectMayOutliveItsLease(t *testing.T) {
	t.Parallel()
	settings := quick
	settings.Lease, settings.Heartbeat = 10*time.Minute, 100*time.Millisecond
	b := setup(t, settings)
	b.add(t, "e1")
	started, finish := make(chan struct{}, 10), make(chan struct{})
	effect := Effect{Timeout: patience, Do: func(ctx context.Context, c *Claim) error {
		if err := c.Begin(ctx); err != nil {
			return err
		}
		started <- struct{}{}
		<-finish
		return nil
	}}
	b.run(t, b.leases, effect)
	<-started
	b.run(t, b.open(t, settings), effect)
	for range 3 {
		b.exec(t, `update lease set due_at = due_at - interval '9 min'`)
		aged := b.due(t)
		testkit.Until(t, func() bool { return b.due(t).After(aged) },
			"renewed again and again")
	}
	close(finish)
	b.await(t, "e1", Done)
	require.Equal(t, 1, b.count(t, `select attempts from lease`))
	require.Empty(t, started)
}

func (b *bundle) due(t *testing.T) (at time.Time) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), `select due_at from lease`).Scan(&at))
	return at
}

func TestALostLeaseEndsTheAttempt(t *testing.T) {
	t.Parallel()
	settings := quick
	settings.Lease, settings.Heartbeat = time.Minute, 10*time.Millisecond
	b := setup(t, settings)
	b.add(t, "e1")
	inside, ended := make(chan struct{}), make(chan error)
	b.run(t, b.leases, Effect{Do: func(ctx context.Context, c *Claim) error {
		close(inside)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return c.Begin(context.WithoutCancel(ctx))
	}})
	<-inside
	b.exec(t, `update lease set token = gen_random_uuid()`)
	require.ErrorIs(t, <-ended, ErrStale)
	counted := b.leases.metrics.attempts.WithLabelValues("stale")
	testkit.Until(t, func() bool { return testutil.ToFloat64(counted) == 1 })
	require.Equal(t, Claimed, b.state(t, "e1"))
}

func TestARunnerCarriesOutTheRowOfAVanishedClaimant(t *testing.T) {
	t.Parallel()
	settings := quick
	settings.Lease, settings.Poll, settings.MaxAttempts = 200*time.Millisecond, time.Hour, 50
	b := setup(t, settings)
	b.add(t, "e1")
	b.claim(t)
	b.run(t, b.open(t, settings), Effect{Do: begin})
	b.await(t, "e1", Done)
	require.Greater(t, b.count(t, `select attempts from lease`), 1)
}

func TestShutdownFinishesTheAttemptsUnderWay(t *testing.T) {
	t.Parallel()
	settings := quick
	settings.Workers = 1
	b := setup(t, settings)
	b.add(t, "e1", "e2", "e3")
	inside, finish := make(chan string), make(chan struct{})
	b.leases.cfg.Effect.Do = func(ctx context.Context, c *Claim) error {
		if err := c.Begin(ctx); err != nil {
			return err
		}
		inside <- c.EventID
		<-finish
		return ctx.Err()
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- b.leases.Run(ctx) }()
	event := <-inside
	stop()
	close(finish)
	require.NoError(t, <-ended)
	require.Equal(t, Done, b.state(t, event))
	require.Equal(t, 2, b.count(t, `select count(*) from lease where state = 'pending' and attempts = 0`))
}

func TestTheRecordInsists(t *testing.T) {
	t.Parallel()
	b := setup(t, quick)
	b.add(t, "e1")
	tries := 0
	committed := make(chan struct{})
	b.run(t, b.leases, Effect{
		Do: begin,
		Done: func(context.Context, pgx.Tx, *Claim, time.Time) error {
			if tries++; tries < 3 {
				return errors.New("the database went away")
			}
			return nil
		},
		Committed: func(*Claim) { close(committed) },
	})
	<-committed
	b.await(t, "e1", Done)
	require.Equal(t, 1, b.count(t, `select attempts from lease`))
}

func TestEveryStatementHasADeadline(t *testing.T) {
	t.Parallel()
	settings := quick
	settings.Retention = time.Hour
	b := setup(t, settings)
	b.add(t, "old")
	b.exec(t, `update lease set state = 'done', ended_at = now() - interval '1 day'`)
	b.add(t, "e1", "vanished")
	b.exec(t, `update lease set state = 'claimed', token = gen_random_uuid(), due_at = now() where event_id = 'vanished'`)
	b.leases.cfg.Pool = pgtest.Bounded(t, b.pool)
	b.run(t, b.leases, Effect{Do: begin})
	b.await(t, "e1", Done)
	b.await(t, "vanished", Done)
	testkit.Until(t, func() bool { return b.count(t, `select count(*) from lease where event_id = 'old'`) == 0 })
}

func TestMetricsCountTheOpenRows(t *testing.T) {
	t.Parallel()
	b := setup(t, quick)
	b.add(t, "e1", "e2")
	b.exec(t, `update lease set added_at = added_at - interval '1 h'`)
	require.NoError(t, b.claim(t).Begin(t.Context()))
	b.expire(t)
	b.sweep(t)
	metrics, err := b.leases.Measure(t.Context())
	require.NoError(t, err)
	values := map[string]float64{}
	for _, m := range metrics {
		var read dto.Metric
		require.NoError(t, m.Write(&read))
		for _, label := range read.GetLabel() {
			if label.GetName() == "state" {
				name, _, _ := strings.Cut(strings.TrimPrefix(m.Desc().String(), `Desc{fqName: "`), `"`)
				values[name+" "+label.GetValue()] = read.GetGauge().GetValue()
			}
		}
	}
	require.EqualValues(t, 1, values["lease_rows pending"])
	require.EqualValues(t, 1, values["lease_rows uncertain"])
	require.Contains(t, values, "lease_rows failed", "a state without rows is 0, not absent")
	require.Greater(t, values["lease_oldest_seconds pending"], 3600.0)
	require.Greater(t, values["lease_oldest_seconds uncertain"], 3600.0)
	require.Zero(t, values["lease_oldest_seconds claimed"])

	b.pool.Close()
	_, err = b.leases.Measure(t.Context())
	require.ErrorContains(t, err, "count leases")
}

func TestARunnerThatCannotClaimIsNotHealthy(t *testing.T) {
	t.Parallel()
	b := setup(t, quick)
	r := b.leases
	b.run(t, r, Effect{Do: begin})
	b.exec(t, `alter table lease rename to lease_gone`)
	testkit.Until(t, func() bool { return r.failing.Load() != nil })
	require.NoError(t, r.Healthy(t.Context()), "a moment is nothing")
	r.failing.Store(&claimFailure{time.Now().Add(-longestFailure), r.failing.Load().err})
	require.ErrorContains(t, r.Healthy(t.Context()), `relation "lease" does not exist`)
	b.exec(t, `alter table lease_gone rename to lease`)
	testkit.Until(t, func() bool { return r.Healthy(t.Context()) == nil })
	b.add(t, "e1")
	b.await(t, "e1", Done)
}
