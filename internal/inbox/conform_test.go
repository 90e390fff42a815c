package inbox_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/inboxtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	inboxtest.Conform(t, func(t *testing.T) *inboxtest.Subject {
		t.Helper()
		b := setup(t)
		effectOf := func(consumer, id string) string { return consumer + "\t" + id }
		open := func(t *testing.T, consumer string) inboxtest.Process {
			t.Helper()
			cfg := b.Config
			cfg.Consumer = consumer
			in, err := inbox.New(cfg)
			require.NoError(t, err)
			return func(ctx context.Context, id string, handler inboxtest.Handler) (inbox.Outcome, error) {
				return in.Process(ctx, id, func(ctx context.Context, tx pgx.Tx) error {
					return handler.Run(func() error { return b.Note(effectOf(consumer, id))(ctx, tx) })
				})
			}
		}
		return &inboxtest.Subject{
			Open: open, Beside: open,
			Effects: func(t *testing.T, consumer, id string) int {
				t.Helper()
				return b.Effects(t, effectOf(consumer, id))
			},
			Counted:    func(*testing.T) int { return 0 },
			Stop:       b.lock,
			Start:      b.unlock,
			AfterCrash: 1,
			Forget: func(t *testing.T, consumer, id string) {
				t.Helper()
				b.Exec(t, `delete from inbox where consumer = $1 and event_id = $2`, consumer, id)
				b.Exec(t, `update inbox_horizon set remembers_from = now() + interval '1 day'`)
			},
			Forgotten: inbox.Expired,
		}
	})
}

// lock ends all sessions of the database and refuses new ones.
func (b *bundle) lock(t *testing.T) {
	t.Helper()
	b.onServer(t, "alter database %s allow_connections false", "select pg_terminate_backend(pid) from pg_stat_activity "+
		"where datname = '%s'")
}

func (b *bundle) unlock(t *testing.T) {
	t.Helper()
	b.onServer(t, "alter database %s allow_connections true")
	b.Pool.Reset() // of sessions that have not noticed
}

func (b *bundle) onServer(t *testing.T, statements ...string) {
	t.Helper()
	cfg := b.Pool.Config().ConnConfig.Copy()
	name := cfg.Database
	cfg.Database = "postgres"
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	for _, statement := range statements {
		_, err := conn.Exec(t.Context(), strings.ReplaceAll(statement, "%s", name))
		require.NoError(t, err)
	}
}
