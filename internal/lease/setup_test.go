package lease

import (
	"cmp"
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/migrations"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const patience = kafkatest.Patience

type bundle struct {
	pool   *pgxpool.Pool
	leases *Runner
}

func setup(t *testing.T, settings Settings) *bundle {
	t.Helper()
	b := &bundle{pool: pgtest.New(t, migrations.Lease)}
	b.leases = b.open(t, settings)
	return b
}

func (b *bundle) open(t *testing.T, settings Settings) *Runner {
	t.Helper()
	l, err := New(Config{Handler: "test", Pool: b.pool, Settings: filled(settings)})
	require.NoError(t, err)
	return l
}

// filled returns the settings with the defaults in zero fields. A zero retention stays.
func filled(s Settings) Settings {
	d := DefaultSettings()
	s.Workers, s.MaxAttempts = cmp.Or(s.Workers, d.Workers), cmp.Or(s.MaxAttempts, d.MaxAttempts)
	s.Lease, s.Poll = cmp.Or(s.Lease, d.Lease), cmp.Or(s.Poll, d.Poll)
	s.RetryMin, s.RetryMax = cmp.Or(s.RetryMin, d.RetryMin), cmp.Or(s.RetryMax, d.RetryMax)
	s.OnUncertain = cmp.Or(s.OnUncertain, d.OnUncertain)
	return s
}

func (b *bundle) add(t *testing.T, events ...string) {
	t.Helper()
	for _, event := range events {
		_, err := b.pool.Exec(t.Context(), Intent, "test", event)
		require.NoError(t, err)
	}
}

func (b *bundle) claim(t *testing.T) *Claim {
	t.Helper()
	c, err := b.leases.Claim(t.Context())
	require.NoError(t, err)
	require.NotNil(t, c, "a row is due")
	return c
}

func (b *bundle) requireNoneDue(t *testing.T) {
	t.Helper()
	c, err := b.leases.Claim(t.Context())
	require.NoError(t, err)
	require.Nil(t, c)
}

func (b *bundle) sweep(t *testing.T) {
	t.Helper()
	require.NoError(t, b.leases.Sweep(t.Context()))
}

var (
	done      = outcome{state: Done}
	failed    = outcome{state: Failed, reason: "no"}
	skipped   = outcome{state: Skipped, reason: "blocked"}
	retry     = outcome{state: Pending, reason: "later"}
	release   = outcome{state: Pending, reason: "later", uncounted: 1}
	uncertain = outcome{state: Uncertain, reason: "no answer", doubts: 1}
)

func (b *bundle) expire(t *testing.T) {
	t.Helper()
	b.exec(t, `update lease set due_at = clock_timestamp() - interval '1 s' where state in ('claimed', 'submitting')`)
}

func (b *bundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func (b *bundle) state(t *testing.T, event string) (s State) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), `select state from lease where event_id = $1`, event).Scan(&s))
	return s
}

func (b *bundle) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

func (b *bundle) await(t *testing.T, event string, want State) {
	t.Helper()
	testkit.Until(t, func() bool { return b.state(t, event) == want },
		"%s never %s", event, want)
}

func (b *bundle) run(t *testing.T, l *Runner, effect Effect) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	l.cfg.Effect = effect
	l.cfg.Effect.Timeout = cmp.Or(effect.Timeout, l.cfg.Settings.Lease)
	go func() { done <- l.Run(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	return stop
}

func begin(ctx context.Context, c *Claim) error { return c.Begin(ctx) }
