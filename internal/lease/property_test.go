package lease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/test/pgtest"
)

// The database logs each row change with its connection's name, which the code under test does not know.
const watchSQL = `
create table watched (
    n bigint generated always as identity, actor text, event_id text, was text, is_now text, was_due timestamptz,
    at timestamptz default clock_timestamp(), renamed boolean
);
create function watch() returns trigger language plpgsql as $$ begin
    insert into watched (actor, event_id, was, is_now, was_due, renamed) values (current_setting('application_name'),
        new.event_id, old.state, new.state, old.due_at, new.token is distinct from old.token);
    return new;
end $$;
create trigger watch after update on lease for each row execute function watch()`

// actor is a connection with its own name, and the claims that it believes it has.
type actor struct {
	name   string
	leases *Runner
	claims []*Claim
}

func newActor(t *testing.T, b *bundle, name, policy string) *actor {
	cfg, err := pgxpool.ParseConfig(pgtest.DSN(b.pool))
	require.NoError(t, err)
	cfg.MaxConns = 1
	cfg.ConnConfig.RuntimeParams["application_name"] = name
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(t.Context()), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	leases, err := New(Config{
		Handler: "test", Pool: pool,
		Settings: filled(Settings{OnUncertain: policy, MaxAttempts: 4, RetryMin: time.Microsecond}),
	})
	require.NoError(t, err)
	return &actor{name: name, leases: leases}
}

// Only the last claimant moves a row, or a sweep after its lease. Refused steps return ErrStale.
func TestRandomSchedulesAreFenced(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{Park, Resend} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Settings{})
			b.exec(t, watchSQL)
			actors := []*actor{newActor(t, b, "a1", policy), newActor(t, b, "a2", policy), newActor(t, b, "a3", policy)}
			stale := 0
			rapid.Check(t, func(rt *rapid.T) {
				b.exec(t, `truncate lease, watched`)
				for _, a := range actors {
					a.claims = nil
				}
				b.add(t, "e1", "e2", "e3")
				for range rapid.IntRange(5, 25).Draw(rt, "steps") {
					stale += b.step(t, rt, actors)
				}
				b.requireFenced(t, rt, policy)
			})
			require.Positive(t, stale, "no schedule met a lost lease: the test shows nothing")
		})
	}
}

func (b *bundle) step(t *testing.T, rt *rapid.T, actors []*actor) (stale int) {
	ctx := t.Context()
	a := rapid.SampledFrom(actors).Draw(rt, "actor")
	what := rapid.SampledFrom([]string{
		"claim", "claim", "begin", "begin", "heartbeat", "done", "failed", "skipped", "retry", "release", "uncertain",
		"sweep", "expire",
	}).Draw(rt, "what")
	switch what {
	case "claim":
		c, err := a.leases.Claim(ctx)
		require.NoError(t, err)
		if c != nil {
			a.claims = append(a.claims, c)
		}
		return 0
	case "sweep":
		require.NoError(t, a.leases.Sweep(ctx))
		return 0
	case "expire":
		b.expire(t)
		return 0
	}
	if len(a.claims) == 0 {
		return 0
	}
	c := rapid.SampledFrom(a.claims).Draw(rt, "claim")
	var err error
	switch what {
	case "begin":
		err = c.Begin(ctx)
	case "heartbeat":
		err = c.renew(ctx)
	case "done":
		err = c.record(ctx, done)
	case "failed":
		err = c.record(ctx, failed)
	case "skipped":
		err = c.record(ctx, skipped)
	case "retry":
		err = c.record(ctx, retry)
	case "release":
		err = c.record(ctx, release)
	case "uncertain":
		o := uncertain
		if c.begun {
			o = a.leases.judge(c, errors.New("no answer"))
		}
		err = c.record(ctx, o)
	}
	if errors.Is(err, ErrStale) {
		return 1
	}
	require.NoError(t, err, what)
	return 0
}

const readWatched = `
select actor, event_id, was, is_now, was_due <= at, renamed from watched where actor like 'a_' order by n`

func (b *bundle) requireFenced(t *testing.T, rt *rapid.T, policy string) {
	rows, err := b.pool.Query(t.Context(), readWatched)
	require.NoError(t, err)
	defer rows.Close()
	holder := map[string]string{}
	for rows.Next() {
		var who, event string
		var was, now State
		var ended, newToken bool
		require.NoError(t, rows.Scan(&who, &event, &was, &now, &ended, &newToken))
		move := fmt.Sprintf("%s moves %s from %s to %s", who, event, was, now)
		mine := holder[event] == who
		switch {
		case now == Claimed && was == Claimed && !newToken:
			require.True(rt, mine, move)
		case now == Claimed:
			require.True(rt, ended && was == Pending, move)
			require.True(rt, newToken, move)
			holder[event] = who
		case was == Claimed && now == Submitting, was == Submitting && now == Submitting, was == Submitting && now == Done:
			require.True(rt, mine, move)
		case was == Claimed && (now == Failed || now == Pending):
			require.True(rt, mine || ended, move)
		case now == Skipped && (was == Claimed || was == Submitting):
			require.True(rt, mine, move)
		case was == Submitting && now == Failed:
			require.True(rt, mine, move)
		case was == Submitting && now == Uncertain, was == Submitting && now == Pending && policy == Resend:
			require.True(rt, mine || ended, move)
		case was == Submitting && now == Pending:
			require.True(rt, mine, move)
		default:
			require.Fail(rt, "no such step", move)
		}
	}
	require.NoError(t, rows.Err())
}
