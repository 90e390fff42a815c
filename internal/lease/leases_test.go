package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func requireStale(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, ErrStale)
	require.ErrorContains(t, err, "on event e1 ")
}

func TestSettingsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Settings){
		"no worker": func(s *Settings) { s.Workers = 0 }, "no attempt": func(s *Settings) { s.MaxAttempts = 0 },
		"no lease": func(s *Settings) { s.Lease = 0 }, "no poll": func(s *Settings) { s.Poll = 0 },
		"no pause": func(s *Settings) { s.RetryMin = 0 }, "pauses": func(s *Settings) { s.RetryMax = s.RetryMin - 1 },
		"heartbeat": func(s *Settings) { s.Heartbeat = s.Lease }, "policy": func(s *Settings) { s.OnUncertain = "ask" },
	} {
		settings := DefaultSettings()
		spoil(&settings)
		_, err := New(Config{Handler: "test", Pool: &pgxpool.Pool{}, Settings: settings})
		require.ErrorContains(t, err, `leases of "test": `, name)
	}
	_, err := New(Config{Handler: "test", Pool: &pgxpool.Pool{}, Settings: DefaultSettings()})
	require.NoError(t, err)
}

func TestAnIntentIsPartOfItsTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{})
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), Intent, "test", "e1")
		require.NoError(t, err)
		return errors.New("rolled back")
	})
	require.Error(t, err)
	b.requireNoneDue(t)

	b.add(t, "e1")
	_, err = b.pool.Exec(t.Context(), Intent, "test", "e1")
	require.ErrorContains(t, err, "lease_pkey", "one intent per handler and event")
}

func TestAStaleClaimChangesNothing(t *testing.T) {
	t.Parallel()
	for name, successor := range map[string]func(t *testing.T, b *bundle){
		"taken over": func(t *testing.T, b *bundle) { b.claim(t) },
		"begun by another": func(t *testing.T, b *bundle) {
			require.NoError(t, b.claim(t).Begin(t.Context()))
		},
		"done by another": func(t *testing.T, b *bundle) {
			c := b.claim(t)
			require.NoError(t, c.Begin(t.Context()))
			require.NoError(t, c.record(t.Context(), done))
		},
		"put back by another": func(t *testing.T, b *bundle) {
			require.NoError(t, b.claim(t).record(t.Context(), retry))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Settings{})
			b.add(t, "e1")
			first := b.claim(t)
			b.expire(t)
			b.sweep(t)
			successor(t, b)
			before := b.count(t, `select hashtext(lease::text) from lease`)

			ctx := t.Context()
			requireStale(t, first.Begin(ctx))
			requireStale(t, first.renew(ctx))
			b.leases.cfg.Effect.Done = func(context.Context, pgx.Tx, *Claim, time.Time) error {
				t.Error("the event of an effect that was not recorded")
				return nil
			}
			for _, o := range []outcome{done, failed, skipped, retry, release, uncertain} {
				requireStale(t, first.record(ctx, o))
			}
			require.Equal(t, before, b.count(t, `select hashtext(lease::text) from lease`))
			require.EqualValues(t, 7, testutil.ToFloat64(b.leases.metrics.stale))
			require.EqualValues(t, 1, testutil.ToFloat64(b.leases.metrics.takeovers))
		})
	}
}

func TestALeaseThatEndedBeginsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{})
	b.add(t, "e1")
	c := b.claim(t)
	b.expire(t)
	requireStale(t, c.Begin(t.Context()))
	require.Equal(t, Claimed, b.state(t, "e1"))
}

func TestAHeartbeatKeepsALease(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{})
	b.add(t, "e1")
	c := b.claim(t)
	b.expire(t)
	require.NoError(t, c.renew(t.Context()))
	b.sweep(t)
	b.requireNoneDue(t)
	require.NoError(t, c.Begin(t.Context()))
}

func TestWhatMayHaveHappenedIsUpToThePolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]State{Park: Uncertain, Resend: Pending} {
		for name, doubt := range map[string]func(t *testing.T, b *bundle, c *Claim){
			"its claimant vanished": func(t *testing.T, b *bundle, _ *Claim) {
				b.expire(t)
				b.sweep(t)
			},
			"its claimant reports it": func(t *testing.T, b *bundle, c *Claim) {
				require.NoError(t, c.record(t.Context(), b.leases.judge(c, errors.New("no answer"))))
			},
		} {
			t.Run(policy+", "+name, func(t *testing.T) {
				t.Parallel()
				b := setup(t, Settings{OnUncertain: policy, MaxAttempts: 2})
				b.add(t, "e1")
				c := b.claim(t)
				b.sweep(t)
				require.Equal(t, Claimed, b.state(t, "e1"), "not begun is not in doubt")
				require.NoError(t, c.Begin(t.Context()))
				doubt(t, b, c)
				require.Equal(t, want, b.state(t, "e1"))
				require.Equal(t, 1, b.count(t, `select doubts from lease`))
				requireStale(t, c.record(t.Context(), done))
			})
		}
	}
}

func TestResendingEndsWithTheAttempts(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{OnUncertain: Resend, MaxAttempts: 2})
	b.add(t, "e1")
	for _, want := range []State{Pending, Uncertain} {
		b.exec(t, `update lease set due_at = clock_timestamp()`)
		c := b.claim(t)
		require.NoError(t, c.Begin(t.Context()))
		require.NoError(t, c.record(t.Context(), b.leases.judge(c, errors.New("no answer"))))
		require.Equal(t, want, b.state(t, "e1"))
	}
	require.Equal(t, 2, b.count(t, `select doubts from lease`))
}

func TestARowThatEndsItsClaimantsIsGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{MaxAttempts: 2})
	b.add(t, "e1")
	b.claim(t)
	b.add(t, "e2")
	b.sweep(t)
	require.Equal(t, Claimed, b.state(t, "e1"), "its claimant lives")
	b.expire(t)
	b.sweep(t)
	require.Equal(t, Pending, b.state(t, "e1"))
	require.Equal(t, 1, b.count(t, `select attempts from lease where event_id = 'e1'`))
	require.Equal(t, "e2", b.claim(t).EventID, "it has waited for longer")
	require.Equal(t, "e1", b.claim(t).EventID)
	b.expire(t)
	b.sweep(t)
	require.Equal(t, Failed, b.state(t, "e1"))
	require.Zero(t, b.count(t, `select sum(doubts) from lease`), "it has certainly had no effect")
	require.Equal(t, 1, b.count(t, `select count(*) from lease
		where error = 'given up after 2 attempts: its claimant vanished before it had begun'`))
}

// The answer to a commit may be lost.
func TestAnOutcomeIsRecordedOnceHoweverOftenItIsSaid(t *testing.T) {
	t.Parallel()
	later := outcome{state: Pending, pause: time.Hour, uncounted: 1}
	for name, o := range map[string]outcome{
		"failed": failed, "skipped": skipped, "put back": retry, "released": later, "uncertain": uncertain,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Settings{})
			b.add(t, "e1")
			c := b.claim(t)
			require.NoError(t, c.Begin(t.Context()))
			require.NoError(t, c.record(t.Context(), o))
			before := b.count(t, `select hashtext(lease::text) from lease`)
			require.NoError(t, c.record(t.Context(), o))
			require.Equal(t, before, b.count(t, `select hashtext(lease::text) from lease`))
			require.Equal(t, o.state, b.state(t, "e1"))
			requireStale(t, c.renew(t.Context()))
			require.Zero(t, testutil.ToFloat64(b.leases.metrics.stale), "a heartbeat during the recording")
			requireStale(t, c.Begin(t.Context()))
			requireStale(t, c.record(t.Context(), done))
			b.exec(t, `update lease set state = 'pending', ended_at = null, due_at = clock_timestamp()`)
			b.claim(t)
			requireStale(t, c.record(t.Context(), o))
		})
	}
}

func TestDoneIsRecordedOnceWithItsEvent(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{})
	b.exec(t, `create table said (at timestamptz)`)
	b.add(t, "e1")
	c := b.claim(t)
	say := func(ctx context.Context, tx pgx.Tx, _ *Claim, at time.Time) error {
		_, err := tx.Exec(ctx, `insert into said values ($1)`, at)
		return err
	}
	b.leases.cfg.Effect.Done = say
	requireStale(t, c.record(t.Context(), done))
	require.NoError(t, c.Begin(t.Context()))
	refused := errors.New("no room in the outbox")
	b.leases.cfg.Effect.Done = func(context.Context, pgx.Tx, *Claim, time.Time) error { return refused }
	require.ErrorIs(t, c.record(t.Context(), done), refused)
	require.Equal(t, Submitting, b.state(t, "e1"), "together or not at all")
	b.leases.cfg.Effect.Done = say
	require.NoError(t, c.record(t.Context(), done))
	require.NoError(t, c.record(t.Context(), done), "the answer to the first was lost")
	require.Equal(t, 1, b.count(t, `select count(*) from said join lease on ended_at = at and state = 'done'`))
}

func TestFreshRowsDoNotHideOneThatIsDue(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{})
	b.exec(t, `insert into lease (handler, event_id, state, token, due_at)
		select 'test', 'fresh-' || n, (array['pending', 'claimed', 'submitting'])[1 + n % 3], gen_random_uuid(),
		       clock_timestamp() + interval '1 h' from generate_series(1, 3000) n`)
	b.exec(t, `insert into lease (handler, event_id, state, token, due_at) values
		('test', 'e1', 'claimed', gen_random_uuid(), clock_timestamp() - interval '1 s'),
		('test', 'e2', 'submitting', gen_random_uuid(), clock_timestamp() - interval '1 s')`)
	b.exec(t, `insert into lease (handler, event_id, state, ended_at)
		select 'test', 'done-' || n, 'done', clock_timestamp() from generate_series(1, 3000) n`)
	b.exec(t, `analyze lease`)
	for sql, args := range map[string][]any{
		claimRow:  {"test", "00000000-0000-0000-0000-000000000000", 60.0},
		sweepRows: {"test", 1000, false, 50},
		purgeRows: {"test", 60.0, 1000},
	} {
		require.Less(t, b.rowsRead(t, sql, args...), 50.0, "the clock is compared in the index")
	}
	b.sweep(t)
	require.Equal(t, "e1", b.claim(t).EventID)
	require.Equal(t, Uncertain, b.state(t, "e2"))
}

// rowsRead sums the rows of the plan's nodes. It rolls back.
func (b *bundle) rowsRead(t *testing.T, sql string, args ...any) (read float64) {
	t.Helper()
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
	var plans []map[string]any
	require.NoError(t, tx.QueryRow(t.Context(), `explain (analyze, format json) `+sql, args...).Scan(&plans))
	var walk func(node map[string]any)
	walk = func(node map[string]any) {
		for _, key := range []string{"Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck"} {
			if n, ok := node[key].(float64); ok {
				read += n
			}
		}
		children, _ := node["Plans"].([]any)
		for _, child := range children {
			walk(child.(map[string]any))
		}
	}
	walk(plans[0]["Plan"].(map[string]any))
	return read
}

func TestABeginThatWaitsForItsRow(t *testing.T) {
	t.Parallel()
	for change, stale := range map[string]bool{
		`due_at = due_at + interval '1 s'`: false, `token = gen_random_uuid()`: true, `due_at = '2000-01-01'`: true,
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Settings{})
			b.add(t, "e1")
			c := b.claim(t)
			tx, err := b.pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(t.Context()) }()
			_, err = tx.Exec(t.Context(), `update lease set `+change)
			require.NoError(t, err)
			begun := make(chan error, 1)
			go func() { begun <- c.Begin(t.Context()) }()
			testkit.Until(t, func() bool {
				return b.count(t, `select count(*) from pg_stat_activity
					where datname = current_database() and wait_event_type = 'Lock'`) == 1
			})
			require.NoError(t, tx.Commit(t.Context()))
			if err := <-begun; stale {
				requireStale(t, err)
				require.Equal(t, Claimed, b.state(t, "e1"))
			} else {
				require.NoError(t, err)
				require.Equal(t, Submitting, b.state(t, "e1"))
			}
		})
	}
}

func TestSettingsThatCannotHold(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{})
	for name, cfg := range map[string]Config{
		"heartbeat too slow":      {Settings: Settings{Lease: time.Second, Heartbeat: time.Second}},
		"pauses the wrong way":    {Settings: Settings{RetryMin: time.Minute, RetryMax: time.Second}},
		"effect outlives a lease": {Settings: Settings{Lease: time.Second}, Timeout: time.Second},
	} {
		cfg.Handler, cfg.Pool, cfg.Settings = "test", b.pool, filled(cfg.Settings)
		_, err := New(cfg)
		require.Error(t, err, name)
	}
	_, err := New(Config{Pool: b.pool})
	require.Error(t, err)
}

func TestPausesDoubleUpToTheirLimit(t *testing.T) {
	t.Parallel()
	s := Settings{RetryMin: time.Second, RetryMax: 5 * time.Second}
	var pauses []time.Duration
	for attempt := range 5 {
		pauses = append(pauses, s.pause(attempt+1))
	}
	require.Equal(t, []time.Duration{1e9, 2e9, 4e9, 5e9, 5e9}, pauses)
}

func TestTimePassesForLeases(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{Lease: time.Minute})
	b.add(t, "event-1")
	require.NoError(t, b.claim(t).record(t.Context(), outcome{state: Pending, reason: "away", pause: time.Hour}))
	b.requireNoneDue(t)
	pgtest.Advance(t, b.pool, time.Hour)
	require.Equal(t, 2, b.claim(t).Attempt)
	pgtest.Advance(t, b.pool, time.Minute)
	b.sweep(t)
	require.Equal(t, 3, b.claim(t).Attempt, "a lease that was not renewed has run out")
}

func TestReopenAndSettle(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{})
	b.add(t, "e1", "e2", "e3")
	for range 3 {
		c := b.claim(t)
		require.NoError(t, c.Begin(t.Context()))
		if c.EventID == "e3" {
			require.NoError(t, c.record(t.Context(), failed))
			continue
		}
		require.NoError(t, c.record(t.Context(), uncertain))
	}
	require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		settled, err := Settle(t.Context(), tx, "test", []string{"e1", "e3", "e4"})
		require.NoError(t, err)
		require.Len(t, settled, 1)
		require.Equal(t, "e1", settled[0].EventID)
		return Reopen(t.Context(), tx, "test", []string{"e1", "e2", "e3"})
	}))
	require.Equal(t, Done, b.state(t, "e1"))
	require.Equal(t, Pending, b.state(t, "e2"))
	require.Equal(t, Pending, b.state(t, "e3"))
	require.Equal(t, 1, b.claim(t).Attempt)
}

func TestOldRowsArePurged(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{Retention: time.Hour})
	b.exec(t, `insert into lease (handler, event_id, state, ended_at)
		select 'test', state || ' ' || age, state, now() - age * interval '1 min'
		from unnest(array['done', 'skipped', 'failed', 'uncertain']) state, unnest(array[1, 120]) age`)
	b.add(t, "pending")
	b.exec(t, `insert into lease (handler, event_id, state, ended_at) values ('other', 'done 120', 'done', 'epoch')`)
	refused := errors.New("refused")
	b.leases.cfg.Effect.Purged = func(context.Context, pgx.Tx, []string) error { return refused }
	require.ErrorIs(t, b.leases.Purge(t.Context()), refused)
	require.Equal(t, 10, b.count(t, `select count(*) from lease`))
	var gone []string
	b.leases.cfg.Effect.Purged = func(_ context.Context, _ pgx.Tx, ids []string) error {
		gone = append(gone, ids...)
		return nil
	}
	require.NoError(t, b.leases.Purge(t.Context()))
	require.ElementsMatch(t, []string{"done 120", "skipped 120"}, gone)
	require.Equal(t, 8, b.count(t, `select count(*) from lease`))

	kept := setup(t, Settings{})
	kept.add(t, "e1")
	kept.exec(t, `update lease set state = 'done', ended_at = 'epoch'`)
	require.NoError(t, kept.leases.Purge(t.Context()))
	require.Equal(t, 1, kept.count(t, `select count(*) from lease`), "without a retention all is kept")
}

func TestARunnerPurges(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{Retention: time.Hour})
	b.exec(t, `insert into lease (handler, event_id, state, ended_at)
		select 'test', n::text, 'done', clock_timestamp() - interval '2 h' from generate_series(1, 2500) as n`)
	b.run(t, b.leases, Effect{Do: func(context.Context, *Claim) error { return nil }})
	testkit.Until(t, func() bool { return b.count(t, `select count(*) from lease`) == 0 })
}
