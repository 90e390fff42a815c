package audit_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/pgtest"
	"example.com/twinbox/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestActionsStandInTheChangesTransaction(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, migrations.Audit)
	done := []audit.Action{
		{By: "ana", Verb: "edit", Kind: "dead_letter", Subject: "7", Reason: "typo", Before: "waiting", After: "waiting"},
		{By: "ben", Verb: "discard", Kind: "dead_letter", Count: 40, Detail: map[string]string{"code": "empty_value"}},
	}
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, audit.Record(t.Context(), tx, done...))
	require.NoError(t, tx.Rollback(t.Context()))
	none, err := audit.List(t.Context(), pool, "", 0, 10)
	require.NoError(t, err)
	require.Empty(t, none, "what was rolled back was not done")

	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return audit.Record(t.Context(), tx, done...)
	}))
	all, err := audit.List(t.Context(), pool, "dead_letter", 0, 10)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, int64(1), all[0].Count, "one thing unless said otherwise")
	require.Equal(t, int64(40), all[1].Count)
	require.Equal(t, "empty_value", all[1].Detail["code"])

	one, err := audit.Of(t.Context(), pool, "dead_letter", "7")
	require.NoError(t, err)
	require.Equal(t, all[:1], one)
	require.Equal(t, []any{"ana", "edit", "typo", "waiting"}, []any{one[0].By, one[0].Verb, one[0].Reason, one[0].Before})
	next, err := audit.List(t.Context(), pool, "", all[0].ID, 10)
	require.NoError(t, err)
	require.Equal(t, all[1:], next)
}

func TestAnActionNamesWhoDidWhat(t *testing.T) {
	t.Parallel()
	for _, a := range []audit.Action{{Verb: "edit", Kind: "mail"}, {By: "ana", Kind: "mail"}, {By: "ana", Verb: "edit"}} {
		require.ErrorIs(t, audit.Record(t.Context(), nil, a), audit.ErrIncomplete)
	}
}
