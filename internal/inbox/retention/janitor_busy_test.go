package retention_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/inbox/retention"
	"example.com/twinbox/test/inboxtest"
)

func TestTheJanitorGivesWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.split(t, 4)
	b.Exec(t, `drop table inbox_`+b.today.AddDate(0, 0, 7).Format("20060102"))
	limits := b.watchLimits(t)
	var log bytes.Buffer
	j := b.janitor(t, day, func(c *retention.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	in := b.Inbox(t)

	busy, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = busy.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = busy.Exec(t.Context(), `lock table inbox in row exclusive mode`)
	require.NoError(t, err)
	patient, cancel := context.WithTimeout(t.Context(), inboxtest.WaitLimit)
	defer cancel()
	group, ctx := errgroup.WithContext(patient)
	var round retention.Round
	group.Go(func() (err error) {
		round, err = j.Tidy(ctx)
		return err
	})
	other := inboxtest.NewEvent().ID
	group.Go(func() error {
		_, err := in.Process(ctx, other, b.Note(other))
		return err
	})
	require.NoError(t, group.Wait())
	require.Equal(t, retention.Round{}, round)
	const putOff = `the inbox is in use, the next round tries again" change=`
	require.Contains(t, log.String(), putOff+`"create the inbox partition of `)
	require.Contains(t, log.String(), putOff+`"drop inbox_`)
	require.Equal(t, 1, b.Effects(t, other), "others write meanwhile")

	require.NoError(t, busy.Rollback(t.Context()))
	require.Equal(t, retention.Round{Created: 1, Dropped: 3}, b.tidy(t, j), "at the next round")
	require.Equal(t, []string{
		"CREATE TABLE 500ms", "ALTER TABLE 500ms", "DROP TABLE 500ms", "DROP TABLE 500ms", "DROP TABLE 500ms",
	}, limits())
}

func (b *bundle) watchLimits(t *testing.T) func() []string {
	t.Helper()
	b.Exec(t, `
		create table public.limits (n int generated always as identity, limited text);
		create function public.note_limit() returns event_trigger language plpgsql as $$
		begin
			insert into public.limits (limited) values (tg_tag || ' ' || current_setting('lock_timeout'));
		end $$;
		create event trigger note_limit on ddl_command_start execute function public.note_limit()`)
	return func() []string { return b.List(t, `select limited from public.limits order by n`) }
}
