package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMailsOfTwoServicesAreRetried(t *testing.T) {
	t.Parallel()
	const a, b, c = anID, aKey, "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a11"
	const missing, sent = `{"subject":"%s","code":"mail_not_found","detail":"none"}`,
		`{"subject":"%s","code":"mail_not_settled","detail":"it is sent"}`
	retry := func(order, notification string, args ...string) result {
		of := func(result string) string {
			return listener(t, answers(map[string]string{
				"service": `{}`, "mails/retry": result,
			}))
		}
		return at(t, "", of(notification), append(args, "mail", "retry", a, b, c,
			"--yes", "--reason", "r", "--admin", "order="+of(order))...)
	}
	failed := func(count, failed int, errors string, ids ...any) string {
		return fmt.Sprintf(`{"count":%d,"failed":%d,"errors":[%s]}`, count, failed, fmt.Sprintf(errors, ids...))
	}
	twoMissing := missing + "," + missing
	const lines = "Put back 1 mail of notification.\nPut back %s of order.\n"
	const table = "NOT DONE                              CODE              WHY\n%s  mail_not_settled  it is sent\n"
	for name, of := range map[string]struct {
		order, notification string
		code                int
		stdout              string
		failed              int64
	}{
		"each is somewhere": {
			failed(2, 1, missing, c), failed(1, 2, twoMissing, a, b), 0, fmt.Sprintf(lines, "2 mails"), 0,
		},
		"one is settled": {
			failed(1, 2, sent+","+missing, a, c), failed(1, 2, twoMissing, a, b), exitPartial,
			fmt.Sprintf(lines+table, "1 mail", a), 1,
		},
		"one is nowhere": {
			failed(1, 2, twoMissing, b, c), failed(0, 3, sent+","+twoMissing, c, a, b), exitPartial,
			fmt.Sprintf("Put back 1 mail of order.\n"+table, c) + b + "  mail_not_found    none\n", 2,
		},
	} {
		r := retry(of.order, of.notification)
		require.Equal(t, of.code, r.code, "%s: %s", name, r.stderr)
		require.Equal(t, of.stdout, r.stdout, name)
		var sum effects
		retry(of.order, of.notification, "--json").json(t, &sum)
		require.Equal(t, of.failed, sum.Failed, name)
	}
}

func TestAddressesOfMails(t *testing.T) {
	t.Parallel()
	notification := listener(t, answers(map[string]string{
		"mails": `{"items":[{"id":"1","recipient":"ada@example.org"},{"id":"2","recipient":""}]}`,
	}))
	list := func(args ...string) []string {
		r := at(t, "", notification, append([]string{"mail", "list", "--state", "sent"}, args...)...)
		require.Zero(t, r.code, r.stderr)
		return strings.Split(strings.TrimSpace(r.stdout), "\n")
	}
	none := listener(t, says(`{"items":[]}`))
	require.Equal(t, "No mails in the state open (--state all lists every one).\n", at(t, "", none, "mail", "list").stdout)
	plain := list()
	require.Len(t, plain, 3)
	require.NotContains(t, plain[0], "RECIPIENT")
	require.NotContains(t, plain[1], "ada@example.org")
	full := list("--recipient")
	require.Regexp(t, ` RECIPIENT$`, full[0])
	require.Regexp(t, ` ada@example\.org$`, full[1])
	require.Regexp(t, ` -$`, full[2])
}
