package inbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/test/inboxtest"
)

func TestHandlingIsTimed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const took = 20 * time.Millisecond
	e := inboxtest.NewEvent()
	require.NoError(t, b.Deliver(t, inboxtest.Record(t, e, 1),
		func(ctx context.Context, tx pgx.Tx, _ event.Event, _ inboxtest.Data) error {
			_, err := tx.Exec(ctx, `select pg_sleep($1)`, took.Seconds())
			return err
		}))
	timed := histogram(t, b, "inbox_handle_seconds")
	require.EqualValues(t, 1, timed.GetSampleCount())
	require.GreaterOrEqual(t, timed.GetSampleSum(), took.Seconds())
}

func TestATransactionOfOneEventIsABatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.Deliver(t, inboxtest.Record(t, inboxtest.NewEvent(), 1), effect))
	require.EqualValues(t, 1, histogram(t, b, "inbox_batch_size").GetSampleCount())
}

func histogram(t *testing.T, b *bundle, name string) *dto.Histogram {
	t.Helper()
	families, err := b.Registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetHistogram()
		}
	}
	require.Fail(t, "there is no "+name)
	return nil
}
