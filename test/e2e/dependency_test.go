package e2e

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/broker"
	"example.com/twinbox/dev/local/postgres"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

type dependency struct {
	name     string
	down, up func()
}

func durableDatabase(t *testing.T) (*pgxpool.Pool, dependency) {
	t.Helper()
	server := pgtest.Durable(t)
	dsn := server.DSN("postgres")
	_, err := migrations.Apply(t.Context(), dsn, migrations.ForCustomer()...)
	require.NoError(t, err)
	pool, err := pgxpool.New(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	running := []*postgres.Server{server}
	return pool, dependency{
		name: "database",
		down: func() { require.NoError(t, running[0].Kill()); <-running[0].Done() },
		up:   func() { running[0] = pgtest.Restart(t, running[0]) },
	}
}

// durableBroker returns a broker in process that keeps its data and its address while it is down.
func durableBroker(t *testing.T) (string, dependency) {
	t.Helper()
	kafkatest.InProcess(t)
	cfg := broker.Config{Addr: testkit.ReservePort(t), Dir: t.TempDir()}
	running, err := broker.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, running.Close()) })
	return cfg.Addr, dependency{
		name: "broker",
		down: func() { require.NoError(t, running.Close()) },
		up: func() {
			testkit.Until(t, func() bool {
				again, err := broker.Start(t.Context(), cfg)
				if err == nil {
					running = again
				}
				return err == nil
			})
		},
	}
}

func rest(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
