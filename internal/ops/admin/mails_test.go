package admin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

type mails struct {
	query  adminapi.ListMailsParams
	verb   string
	ids    []string
	change audit.Change
}

func (m *mails) List(_ context.Context, q adminapi.ListMailsParams) ([]adminapi.Mail, error) {
	m.query = q
	return []adminapi.Mail{}, nil
}

func (m *mails) Retry(_ context.Context, ids []string, c audit.Change) (adminapi.Result, error) {
	return m.settle("retry", ids, c)
}

func (m *mails) MarkSent(_ context.Context, ids []string, c audit.Change) (adminapi.Result, error) {
	return m.settle("mark sent", ids, c)
}

func (m *mails) settle(verb string, ids []string, c audit.Change) (adminapi.Result, error) {
	m.verb, m.ids, m.change = verb, ids, c
	return adminapi.Result{DryRun: c.DryRun, Count: int64(len(ids))}, nil
}

func setupMails(t *testing.T) (*bundle, *mails) {
	t.Helper()
	m := &mails{}
	return withoutDatabase(t, func(cfg *admin.Config, _ *http.Server) { cfg.Mails = m }), m
}

const mailID = "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10"

func TestListOfMails(t *testing.T) {
	t.Parallel()
	b, m := setupMails(t)
	found := read[adminapi.Mails](t, b, "mails?state=sent&user_id="+mailID+"&event_id=e&limit=7&recipient=true"+
		"&since=2026-01-02T03:04:05Z&until=2026-01-03T03:04:05Z&after="+mailID)
	require.Equal(t, adminapi.Mails{Items: []adminapi.Mail{}}, found)
	require.Equal(t, adminapi.ListMailsParams{
		State: "sent", UserID: mailID, EventID: "e", Limit: 8, Recipient: true, After: mailID,
		Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Until: time.Date(2026, 1, 3, 3, 4, 5, 0, time.UTC),
	}, m.query)
	read[adminapi.Mails](t, b, "mails")
	require.Equal(t, adminapi.ListMailsParams{Limit: 101}, m.query)
	for _, state := range []string{"open", "pending", "claimed", "submitting", "sent", "failed", "skipped", "uncertain"} {
		read[adminapi.Mails](t, b, "mails?state="+state)
		require.EqualValues(t, state, m.query.State)
	}
	for _, query := range []string{
		"limit=0", "limit=1001", "after=17", "after=", "user_id=17", "user_id=urn:uuid:" + mailID, "limit=1&limit=2",
		"state=typo", "state=Sent", "state=",
	} {
		b.refuses(t, "GET", "mails?"+query, "", 400, "invalid_parameter")
	}
}

func TestSettlingMails(t *testing.T) {
	t.Parallel()
	b, m := setupMails(t)
	for path, verb := range map[string]string{"retry": "retry", "mark-sent": "mark sent"} {
		for _, dryRun := range []bool{true, false} {
			request, err := json.Marshal(adminapi.MailRequest{
				By: "ada", Reason: "r", DryRun: dryRun, Ids: []string{mailID},
			})
			require.NoError(t, err)
			status, body := b.call(t, "POST", "/admin/v1/mails/"+path, string(request))
			require.Equal(t, 200, status, string(body))
			require.Equal(t, verb, m.verb)
			require.Equal(t, []string{mailID}, m.ids)
			require.NotEmpty(t, m.change.Deed)
			m.change.Deed = ""
			require.Equal(t, audit.Change{By: "ada", Reason: "r", DryRun: dryRun}, m.change)
		}
	}
	*m = mails{}
	many := `"` + strings.Repeat(mailID+`","`, 1000) + mailID + `"`
	for name, c := range map[string]struct{ by, reason, ids string }{
		"none":              {"ada", "r", ``},
		"too many":          {"ada", "r", many},
		"no id":             {"ada", "r", `"17"`},
		"an alias":          {"ada", "r", `"` + strings.ToUpper(mailID) + `"`},
		"another alias":     {"ada", "r", `"{` + mailID + `}"`},
		"one of two":        {"ada", "r", `"` + mailID + `","x"`},
		"no name":           {"", "r", `"` + mailID + `"`},
		"no reason":         {"ada", "", `"` + mailID + `"`},
		"a long name":       {strings.Repeat("é", 101), "r", `"` + mailID + `"`},
		"a long reason":     {"ada", strings.Repeat("é", 501), `"` + mailID + `"`},
		"control character": {"ada", `a\u007f`, `"` + mailID + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			b.refuses(t, "POST", "mails/retry",
				`{"by":"`+c.by+`","reason":"`+c.reason+`","dry_run":false,"ids":[`+c.ids+`]}`, 422, "invalid_value")
		})
	}
	require.Empty(t, m.verb, "nothing is settled by a request that is refused")
	status, body := b.call(t, "POST", "/admin/v1/mails/retry", `{"by":"`+strings.Repeat("é", 100)+`","reason":"`+
		strings.Repeat("é", 500)+`","dry_run":false,"ids":["`+mailID+`"]}`)
	require.Equal(t, 200, status, "the longest texts are taken: %s", body)
}
