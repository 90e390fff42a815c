package audit_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/pgtest"
	"example.com/twinbox/engine/audit"
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
	none, err := audit.Find(t.Context(), pool, audit.Filter{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, none, "what was rolled back was not done")

	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return audit.Record(t.Context(), tx, done...)
	}))
	all, err := audit.Find(t.Context(), pool, audit.Filter{Kind: "dead_letter", Limit: 10})
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, int64(1), all[0].Count, "one thing unless said otherwise")
	require.Equal(t, int64(40), all[1].Count)
	require.Equal(t, "empty_value", all[1].Detail["code"])

	one, err := audit.Of(t.Context(), pool, "dead_letter", "7")
	require.NoError(t, err)
	require.Equal(t, all[:1], one)
	require.Equal(t, []any{"ana", "edit", "typo", "waiting"}, []any{one[0].By, one[0].Verb, one[0].Reason, one[0].Before})
	next, err := audit.Find(t.Context(), pool, audit.Filter{After: all[0].ID, Limit: 10})
	require.NoError(t, err)
	require.Equal(t, all[1:], next)
}

func TestAnActionNamesWhoDidWhat(t *testing.T) {
	t.Parallel()
	for _, a := range []audit.Action{{Verb: "edit", Kind: "mail"}, {By: "ana", Kind: "mail"}, {By: "ana", Verb: "edit"}} {
		require.ErrorIs(t, audit.Record(t.Context(), nil, a), audit.ErrIncomplete)
	}
}

// Each condition picks what it says, the newest ones are the last, and they stand in the order of time.
func TestFind(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, migrations.Audit)
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return audit.Record(t.Context(), tx,
			audit.Action{By: "ada", Verb: "replay", Kind: "dead_letter", Subject: "1"},
			audit.Action{By: "bob", Verb: "discard", Kind: "dead_letter", Subject: "2"},
			audit.Action{By: "ada", Verb: "retry", Kind: "mail", Subject: "3"})
	}))
	_, err := pool.Exec(t.Context(), `update public.operator_action set at = '2026-11-20T00:00:00Z' where id = 1`)
	require.NoError(t, err)
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		filter audit.Filter
		want   []string
	}{
		"all":      {audit.Filter{}, []string{"1", "2", "3"}},
		"by":       {audit.Filter{By: "ada"}, []string{"1", "3"}},
		"verb":     {audit.Filter{Verb: "discard"}, []string{"2"}},
		"kind":     {audit.Filter{Kind: "mail"}, []string{"3"}},
		"subject":  {audit.Filter{Kind: "dead_letter", Subject: "1"}, []string{"1"}},
		"since":    {audit.Filter{Since: noon}, []string{"2", "3"}},
		"until":    {audit.Filter{Until: noon}, []string{"1"}},
		"after":    {audit.Filter{After: 1}, []string{"2", "3"}},
		"together": {audit.Filter{By: "ada", Since: noon}, []string{"3"}},
		"first":    {audit.Filter{Limit: 2}, []string{"1", "2"}},
		"newest":   {audit.Filter{Limit: 2, Newest: true}, []string{"2", "3"}},
		"none":     {audit.Filter{By: "eve"}, nil},
	} {
		c.filter.Limit = cmp.Or(c.filter.Limit, 10)
		found, err := audit.Find(t.Context(), pool, c.filter)
		require.NoError(t, err)
		var subjects []string
		for _, a := range found {
			subjects = append(subjects, a.Subject)
		}
		require.Equal(t, c.want, subjects, name)
	}
}
