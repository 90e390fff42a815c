package audit_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

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
		"together": {audit.Filter{By: "ada", Since: noon}, []string{"3"}},
		"newest":   {audit.Filter{Limit: 2}, []string{"2", "3"}},
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
	one, err := audit.Of(t.Context(), pool, "mail", "3")
	require.NoError(t, err)
	require.Len(t, one, 1)
	require.Equal(t, []string{"ada", "retry"}, []string{one[0].By, one[0].Verb})
}

func TestADeedIsOneAction(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, migrations.Audit)
	deed := audit.Change{By: "ada", Deed: "d"}.Action("replay", "dead_letter", "", "waiting", "replayed")
	between := audit.Action{By: "bob", Verb: "retry", Kind: "mail", Subject: "3"}
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return audit.Record(t.Context(), tx, deed, between, deed)
	}))
	found, err := audit.Find(t.Context(), pool, audit.Filter{})
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, "bob", found[0].By)
	require.EqualValues(t, 2, found[1].Count)
}

func TestADeedIsOnOnePage(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, migrations.Audit)
	_, err := pool.Exec(t.Context(), `
		insert into public.operator_action (at, operator, verb, kind, detail)
		select '2026-11-20 12:00Z'::timestamptz + n * interval '1 minute', 'ada', 'discard', 'dead_letter',
			case when n % 2 = 0 then '{"deed":"d"}'::jsonb else '{}' end
		from generate_series(1, 20) n`)
	require.NoError(t, err)
	var counts []int64
	for page := (audit.Filter{Limit: 3}); ; {
		found, err := audit.Find(t.Context(), pool, page)
		require.NoError(t, err)
		if len(found) == 0 {
			break
		}
		for _, a := range slices.Backward(found) {
			counts = append(counts, a.Count)
		}
		page.Until = found[0].At
	}
	require.Equal(t, []int64{10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, counts)
}

func TestAListOfManyActionsEndsInTime(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, migrations.Audit)
	_, err := pool.Exec(t.Context(), `
		insert into public.operator_action (operator, verb, kind, detail)
		select 'ada', 'discard', 'dead_letter', '{"deed":"d"}' from generate_series(1, 500001)`)
	require.NoError(t, err)
	found, err := audit.Find(t.Context(), pool, audit.Filter{Limit: 100})
	require.NoError(t, err)
	require.EqualValues(t, 500_000, found[0].Count, "the newest rows")
}
