package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

func TestOldRowsArePurged(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{Retention: time.Hour})
	b.add(t, "old", "new", "failed", "uncertain", "pending")
	b.add(t, "skipped", "skipped lately")
	b.exec(t, `insert into lease (handler, event_id) values ('other', 'old')`)
	b.exec(t, `update lease set state = event_id, ended_at = clock_timestamp() - interval '2 h'
		where event_id in ('failed', 'uncertain', 'skipped')`)
	b.exec(t, `update lease set state = 'skipped', ended_at = clock_timestamp() where event_id = 'skipped lately'`)
	b.exec(t, `update lease set state = 'done', ended_at = clock_timestamp() - interval '2 h'
		where event_id = 'old'`)
	b.exec(t, `update lease set state = 'done', ended_at = clock_timestamp() where event_id = 'new'`)
	refused := errors.New("refused")
	b.leases.cfg.Effect.Purged = func(context.Context, pgx.Tx, []string) error { return refused }
	require.ErrorIs(t, b.leases.Purge(t.Context()), refused)
	require.Equal(t, 8, b.count(t, `select count(*) from lease`))
	var gone []string
	b.leases.cfg.Effect.Purged = func(_ context.Context, _ pgx.Tx, ids []string) error {
		gone = append(gone, ids...)
		return nil
	}
	require.NoError(t, b.leases.Purge(t.Context()))
	require.ElementsMatch(t, []string{"old", "skipped"}, gone)
	require.Equal(t, 5, b.count(t, `select count(*) from lease where handler = 'test'`))
	require.Equal(t, 1, b.count(t, `select count(*) from lease where handler = 'other'`))

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
