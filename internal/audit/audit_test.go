package audit_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestActionsStandInTheChangesTransaction(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, migrations.Audit)
	done := []audit.Action{
		{
			By: "ana", Verb: "edit", Kind: "dead_letter", Subject: "7", Reason: "typo", Before: "waiting", After: "waiting",
			Count: 1,
		},
		{By: "ben", Verb: "discard", Kind: "dead_letter", Count: 40, Detail: map[string]string{"code": "empty_value"}},
	}
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, audit.Record(t.Context(), tx, done...))
	require.NoError(t, tx.Rollback(t.Context()))
	var rows int
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from public.operator_action`).Scan(&rows))
	require.Zero(t, rows, "what was rolled back was not done")

	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return audit.Record(t.Context(), tx, done...)
	}))
	var told []string
	require.NoError(t, pool.QueryRow(t.Context(), `
		select array_agg(concat_ws(' ', operator, verb, kind, nullif(subject, ''), nullif(reason, ''), nullif(before, ''),
			nullif(after, ''), affected, detail ->> 'code') order by id)
		from public.operator_action`).Scan(&told))
	require.Equal(t, []string{
		"ana edit dead_letter 7 typo waiting waiting 1", "ben discard dead_letter 40 empty_value",
	}, told)
}

func TestAnActionNamesWhoDidWhat(t *testing.T) {
	t.Parallel()
	for _, a := range []audit.Action{{Verb: "edit", Kind: "mail"}, {By: "ana", Kind: "mail"}, {By: "ana", Verb: "edit"}} {
		require.ErrorIs(t, audit.Record(t.Context(), nil, a), audit.ErrIncomplete)
	}
}
