package retention_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox/retention"
)

// Of two instances one is refused and the other one leads the round in which all is well: both say so, each time.
func TestEveryJanitorKnowsWhetherOneWasRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reach := 2 * day
	first, second := b.watched(t, &reach), b.watched(t, &reach)
	b.Exec(t, `update inbox_janitor set due_at = 'epoch'`)
	require.InDelta(t, 1, first(), 0)
	require.InDelta(t, 1, second(), 0, "which found nothing to do")
	reach = 0
	b.Exec(t, `update inbox_janitor set due_at = 'epoch'`)
	require.InDelta(t, 0, second(), 0)
	require.InDelta(t, 0, first(), 0)
}

// watched is an instance: a look of it, and what its metric says then.
func (b *bundle) watched(t *testing.T, reach *time.Duration) func() float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	var looked context.CancelFunc
	j := b.janitor(t, day, func(c *retention.Config) {
		c.Registerer = registry
		c.Redelivery = func(context.Context) (time.Duration, error) { return *reach, nil }
		c.OnRound = func(_ retention.Round, err error) {
			require.NoError(t, err)
			looked()
		}
	})
	return func() float64 {
		var ctx context.Context
		ctx, looked = context.WithCancel(t.Context())
		require.NoError(t, j.Run(ctx))
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "inbox_janitor_refused" {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		t.Fatal("no metric")
		return 0
	}
}
