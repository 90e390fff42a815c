package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
)

func mailOf(id string, listed int64) adminapi.Mail {
	return adminapi.Mail{ID: id, CreatedAt: time.Unix(listed, 0).UTC()}
}

// A page of mails of two states ends where the next one begins: no mail is missing, with
// any clocks on the listing machines.
func TestPagesOfMailsLeaveNoneOut(t *testing.T) {
	t.Parallel()
	states := map[string][]adminapi.Mail{
		"uncertain": {mailOf("1", 10), mailOf("5", 2)},
		"failed":    {mailOf("3", 1), mailOf("4", 30)},
	}
	notification := listener(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/service") {
			says(aNotification)(w, r)
			return
		}
		page := adminapi.Mails{Items: []adminapi.Mail{}}
		for _, m := range states[r.URL.Query().Get("state")] {
			if m.ID > r.URL.Query().Get("after") {
				page.Items = append(page.Items, m)
			}
		}
		require.NoError(t, json.NewEncoder(w).Encode(page))
	})
	var ids []string
	for range 3 {
		args := []string{"mail", "list", "--json", "-n", "2"}
		if len(ids) > 0 {
			args = append(args, "--after", ids[len(ids)-1])
		}
		var page adminapi.Mails
		at(t, "", notification, args...).json(t, &page)
		for _, m := range page.Items {
			ids = append(ids, m.ID)
		}
	}
	require.Equal(t, []string{"1", "3", "4", "5"}, ids)
}

// Several services send mails: each one is shown with the service that has it, in the table and in JSON.
func TestMailsSayWhoSendsThem(t *testing.T) {
	t.Parallel()
	of := func(service, mail string) string {
		return listener(t, answers(map[string]string{
			"service": `{"name":"` + service + `","consumers":[],"mails":true}`,
			"mails":   `{"items":[{"id":"` + mail + `","state":"failed"}]}`,
		}))
	}
	args := []string{"mail", "list", "--state", "failed", "--admin", "order=" + of("order", "1")}
	notification := of("notification", "2")
	r := at(t, "", notification, args...)
	require.Zero(t, r.code, r.stderr)
	require.Regexp(t, `(?s)^SERVICE +ID .*\norder +1 +failed .*\nnotification +2 +failed `, r.stdout)
	var page struct {
		Items []struct{ Service, ID string }
	}
	at(t, "", notification, append(args, "--json")...).json(t, &page)
	require.Equal(t, []struct{ Service, ID string }{{"order", "1"}, {"notification", "2"}}, page.Items)
}

// Addresses are personal data: they are shown only on request.
func TestAddressesOfMails(t *testing.T) {
	t.Parallel()
	notification := listener(t, answers(map[string]string{
		"service": aNotification, "mails": `{"items":[{"id":"1","recipient":"ada@example.org"},{"id":"2","recipient":""}]}`,
	}))
	list := func(args ...string) []string {
		r := at(t, "", notification, append([]string{"mail", "list", "--state", "sent"}, args...)...)
		require.Zero(t, r.code, r.stderr)
		return strings.Split(strings.TrimSpace(r.stdout), "\n")
	}
	plain := list()
	require.Len(t, plain, 3)
	require.NotContains(t, plain[0], "RECIPIENT")
	require.NotContains(t, plain[1], "ada@example.org")
	full := list("--recipient")
	require.Regexp(t, ` RECIPIENT$`, full[0])
	require.Regexp(t, ` ada@example\.org$`, full[1])
	require.Regexp(t, ` -$`, full[2])
	require.Len(t, list("-n", "1"), 2)
}
