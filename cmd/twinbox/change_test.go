package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/service"
)

// turn is a service's answer to a change: its result, or a failure after the done part.
type turn struct {
	result adminapi.Result
	broken bool
}

func (u turn) answer(dryRun bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			says("")(w, r)
			return
		}
		u.result.DryRun = dryRun
		line := map[string]any{"result": u.result}
		if u.broken {
			_, _ = fmt.Fprintf(w, `{"done":%d}`+"\n", u.result.Count)
			line = map[string]any{"problem": map[string]any{"code": "unavailable", "status": 503}}
		}
		_ = json.NewEncoder(w).Encode(line)
	}
}

func turns(t *testing.T, dryRun bool, customer, notification turn, args ...string) result {
	t.Helper()
	args = append([]string{"outbox", "republish", "--key", "k"}, args...)
	if !dryRun {
		args = append(args, "--yes", "--reason", "r")
	}
	return at(t, listener(t, customer.answer(dryRun)), listener(t, notification.answer(dryRun)), args...)
}

func did(count, failed int64, errs ...adminapi.Failure) turn {
	return turn{result: adminapi.Result{Count: count, Failed: failed, Errors: errs}}
}

func noted(of turn, note string) turn {
	of.result.Note = note
	return of
}

func TestWhatAChangeComesTo(t *testing.T) {
	t.Parallel()
	broken := func(count int64) turn { return turn{adminapi.Result{Count: count}, true} }
	missing := adminapi.Failure{Subject: "18", Code: "not_found", Detail: "none"}
	refused := adminapi.Failure{Subject: "17", Code: "handler_failed", Detail: "boom"}
	const hint = "Nothing was changed. To do it, add: --yes --reason \"why\"\n"
	for name, c := range map[string]struct {
		dryRun                 bool
		customer, notification turn
		code                   int
		stdout                 string
	}{
		"all": {
			false, did(2, 0), did(1, 0), 0, "Republished 2 events of customer.\nRepublished 1 event of notification.\n",
		},
		"one side": {false, did(0, 0), did(1, 0), 0, "Republished 1 event of notification.\n"},
		"nothing": {
			false, did(0, 0), did(0, 0), 0, "Republished 0 events of customer.\nRepublished 0 events of notification.\n",
		},
		"dry": {true, did(1, 0), did(0, 0), 0, "Would republish 1 event of customer.\n" + hint},
		"dry, nothing": {
			true, did(0, 0), did(0, 0), 0, "Would republish 0 events of customer.\nWould republish 0 events of notification.\n",
		},
		"some": {
			false, did(1, 0), did(0, 1, refused), exitPartial,
			"Republished 1 event of customer.\nNOT DONE         CODE            WHY\n" +
				"notification/17  handler_failed  boom\n",
		},
		"more than are listed": {
			false, did(1, 0), did(0, 7, refused), exitPartial,
			"Republished 1 event of customer.\nNOT DONE         CODE            WHY\n" +
				"notification/17  handler_failed  boom\n" +
				"6 more are not done. Only the first 100 of each service are listed.\n",
		},
		"notes": {
			false, noted(did(1, 0), "They follow."), noted(did(2, 0), "They follow."), 0,
			"Republished 1 event of customer.\nRepublished 2 events of notification.\nThey follow.\n",
		},
		"dry, notes": {
			true, noted(did(1, 0), "No handler was tried."), did(0, 0), 0,
			"Would republish 1 event of customer.\nNo handler was tried.\n" + hint,
		},
		"one that is missing": {
			false, did(1, 0), did(0, 1, missing), exitPartial,
			"Republished 1 event of customer.\nNOT DONE         CODE       WHY\nnotification/18  not_found  none\n",
		},
		"one that is missing alone": {
			false, did(0, 0), did(0, 1, missing), exitNotFound,
			"Republished 0 events of customer.\nRepublished 0 events of notification.\n" +
				"NOT DONE         CODE       WHY\nnotification/18  not_found  none\n",
		},
		"none": {
			false, did(0, 0), did(0, 1, adminapi.Failure{Subject: "line 3", Code: "c", Detail: "d"}), exitRefused,
			"Republished 0 events of customer.\nRepublished 0 events of notification.\nNOT DONE  CODE  WHY\nline 3    c     d\n",
		},
		"the second broke":           {false, did(2, 0), broken(0), exitPartial, "Republished 2 events of customer.\n"},
		"the second broke in it":     {false, did(0, 0), broken(3), exitPartial, "Republished 3 events of notification.\n"},
		"the first broke":            {false, broken(0), did(1, 0), service.ExitFailure, ""},
		"a dry run broke":            {true, did(2, 0), broken(2), service.ExitFailure, ""},
		"the first broke half way":   {false, broken(1), did(9, 0), exitPartial, "Republished 1 event of customer.\n"},
		"the second broke, none yet": {false, did(0, 0), broken(0), service.ExitFailure, ""},
	} {
		text := turns(t, c.dryRun, c.customer, c.notification)
		require.Equal(t, c.code, text.code, name)
		require.Equal(t, c.stdout, text.stdout, name)
		asJSON := turns(t, c.dryRun, c.customer, c.notification, "--json")
		require.Equal(t, c.code, asJSON.code, name)
		require.Equal(t, c.stdout == "", strings.Contains(asJSON.stdout, `"error"`), "%s: %s", name, asJSON.stdout)
	}
}

func TestAStoppedChangeIsNotDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Setenv(tokenVariable, "t")
	customer := listener(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			says("")(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the client is gone
		_, _ = w.Write([]byte(`{"done":1}` + "\n"))
		_ = http.NewResponseController(w).Flush()
		<-time.After(100 * time.Millisecond) // for the line to be read
		cancel()
		<-r.Context().Done()
	})
	var out, stderr strings.Builder
	args := []string{"outbox", "republish", "--key", "k", "--yes", "--reason", "r", "--admin", "customer=" + customer}
	require.Equal(t, exitPartial, run(ctx, args, &out, &stderr), stderr.String())
	require.Contains(t, stderr.String(), context.Canceled.Error())
	require.Contains(t, out.String(), "Republished 1 event")
}

func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		show := (&streams{err: &out}).progress("customer")
		show(1, 0)
		<-time.After(progressEvery)
		show(2, 0)
		show(3, 0)
		<-time.After(progressEvery)
		show(4, 9)
		require.Equal(t, "customer: 2 done\ncustomer: 4 of 9 done\n", out.String())
	})
}
