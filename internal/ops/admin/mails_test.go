package admin_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

const mailID = "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10"

// withMails adds the mails, uncertain.
func withMails(t *testing.T, ids ...string) option {
	t.Helper()
	return func(cfg *admin.Config, _ *http.Server) {
		cfg.Mails = &admin.MailList{
			Pool: cfg.Pool, Handler: "mails",
			Query: `select id, id::text as event_id, 'welcome' as template, id as user_id, 'ada@example.org' as recipient,
				'' as correlation_id, '2026-01-02T03:04:05Z'::timestamptz as created_at from public.mail`,
		}
		_, err := cfg.Pool.Exec(t.Context(), `create table public.mail as
			select distinct unnest($1::text[])::uuid as id`, ids)
		require.NoError(t, err)
		_, err = cfg.Pool.Exec(t.Context(), `insert into public.lease (handler, event_id, state, ended_at)
			select 'mails', id, 'uncertain', now() from public.mail`)
		require.NoError(t, err)
	}
}

func (b *bundle) states(t *testing.T) (states []string) {
	t.Helper()
	rows, _ := b.pool.Query(t.Context(), `select state from public.lease`)
	states, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return states
}

func TestListOfMails(t *testing.T) {
	t.Parallel()
	b := setup(t, withMails(t, mailID))
	conditions := object{
		"state": "uncertain", "user_id": mailID, "event_id": mailID, "limit": 7, "recipient": true,
		"since": "2026-01-02T03:04:05Z", "until": "2026-01-02T03:04:06Z",
		"after": "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a0f",
	}
	found := read[adminapi.Mails](t, b, "mails", conditions)
	require.Len(t, found.Items, 1)
	require.Equal(t, "ada@example.org", found.Items[0].Recipient)
	require.Empty(t, read[adminapi.Mails](t, b, "mails", object{}).Items[0].Recipient)
	for name, other := range map[string]string{
		"state": "failed", "user_id": "00000000-0000-7000-8000-000000000000", "event_id": "e",
		"since": "2026-01-02T03:04:06Z", "until": "2026-01-02T03:04:05Z", "after": mailID,
	} {
		changed := maps.Clone(conditions)
		changed[name] = other
		require.Empty(t, read[adminapi.Mails](t, b, "mails", changed).Items, name)
	}
	states := []lease.State{
		"open", lease.Pending, lease.Claimed, lease.Submitting, "sent", lease.Failed, lease.Skipped, lease.Uncertain,
	}
	for _, state := range states {
		read[adminapi.Mails](t, b, "mails", object{"state": state})
	}
	b.refuses(t, "POST", "mails", `{"state":"typo"}`, 422, "invalid_value")
}

func TestMailsArePaged(t *testing.T) {
	t.Parallel()
	b := setup(t, withMails(t, mailID, "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a11"))
	first := read[adminapi.Mails](t, b, "mails", object{"limit": 1})
	require.Equal(t, mailID, first.Next)
	last := read[adminapi.Mails](t, b, "mails", object{"limit": 1, "after": first.Next})
	require.Len(t, last.Items, 1)
	require.Empty(t, last.Next)
}

func TestSettlingMails(t *testing.T) {
	t.Parallel()
	b := setup(t, withMails(t, mailID))
	for path, states := range map[string][2]string{
		"retry": {"uncertain", "pending"}, "mark-sent": {"uncertain", "done"}, "skip": {"failed", "skipped"},
	} {
		b.exec(t, `update public.lease set state = '`+states[0]+`', ended_at = now()`)
		for _, dryRun := range []bool{true, false} {
			status, body := b.change(t, "mails/"+path, dryRun, `,"ids":["`+mailID+`"]`)
			require.Equal(t, 200, status, string(body))
			require.Equal(t, dryRun, b.states(t)[0] == states[0])
		}
		require.Equal(t, []string{states[1]}, b.states(t))
	}
	var deeds int
	require.NoError(t, b.pool.QueryRow(t.Context(), `select count(distinct detail ->> 'deed') from operator_action
		where operator = 'ada' and reason = 'r' and subject = $1`, mailID).Scan(&deeds))
	require.Equal(t, 3, deeds)
	b.exec(t, `update public.lease set state = 'uncertain', ended_at = now()`)
	many := `"` + strings.Repeat(mailID+`","`, 1000) + mailID + `"`
	for name, c := range map[string]struct{ by, reason, ids string }{
		"too many":          {"ada", "r", many},
		"an alias":          {"ada", "r", `"` + strings.ToUpper(mailID) + `"`},
		"one of two":        {"ada", "r", `"` + mailID + `","x"`},
		"a long name":       {strings.Repeat("é", 101), "r", `"` + mailID + `"`},
		"a long reason":     {"ada", strings.Repeat("é", 501), `"` + mailID + `"`},
		"control character": {"ada", `a\u007f`, `"` + mailID + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			b.refuses(t, "POST", "mails/retry",
				`{"by":"`+c.by+`","reason":"`+c.reason+`","dry_run":false,"ids":[`+c.ids+`]}`, 422, "invalid_value")
		})
	}
	require.Equal(t, []string{"uncertain"}, b.states(t), "nothing is settled by a request that is refused")
	status, body := b.call(t, "POST", "/admin/v1/mails/retry", `{"by":"`+strings.Repeat("é", 100)+`","reason":"`+
		strings.Repeat("é", 500)+`","dry_run":false,"ids":["`+mailID+`"]}`)
	require.Equal(t, 200, status, "the longest texts are taken: %s", body)
}
