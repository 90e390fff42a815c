package e2e

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/notification"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/verify"
	"example.com/twinbox/test/pgtest"
)

func init() { judges = append(judges, (*stack).requireVerified) }

// requireVerified also works on services that have ended. It requires a verdict on each event.
func (h *stack) requireVerified(t *testing.T) {
	t.Helper()
	requireClean(t, customer.Service.Describe(), h.customerEnv, h.customerDB)
	requireClean(t, notification.Service.Describe(), h.notificationEnv, h.notificationDB)
}

func requireClean(t *testing.T, described eventing.Described, environ []string, db *pgxpool.Pool) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	instance, err := described.Load(environ)
	require.NoError(t, err)
	of, err := instance.Verified(ctx)
	require.NoError(t, err)
	of.Database, of.Pause = pgtest.DSN(db), 0 // no event is under way any more
	verdict, err := verify.Run(ctx, verify.Config{Service: of, Kafka: instance.Client("e2e")})
	require.NoError(t, err)
	require.Empty(t, verdict.Findings)
	require.Empty(t, verdict.Unverifiable)
	for _, topic := range verdict.Produced {
		require.Zero(t, topic.Waiting+topic.Held+topic.Discarded, topic.Topic)
	}
	for _, consumer := range verdict.Consumed {
		require.Zero(t, consumer.Dead, consumer.Consumer)
	}
}
