package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	require.Regexp(t, `(?s)^SERVICE +ID .*\nnotification +2 +failed .*\norder +1 +failed `, r.stdout)
	var page struct {
		Items []struct{ Service, ID string }
	}
	at(t, "", notification, append(args, "--json")...).json(t, &page)
	require.Equal(t, []struct{ Service, ID string }{{"notification", "2"}, {"order", "1"}}, page.Items)
}

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
}
