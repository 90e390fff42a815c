package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/service"
)

var replaying = effect{done: "Replayed", would: "replay", thing: "event"}

// turns runs a change in both services, each of which answers with what is its own.
func turns(t *testing.T, dryRun, asJSON bool, of map[string]turn) (stdout string, err error) {
	t.Helper()
	var services []*client.Service
	for _, name := range inOrder(of) {
		service, newErr := client.New(name, "127.0.0.1:1", "t")
		require.NoError(t, newErr)
		services = append(services, service)
	}
	var out strings.Builder
	to := &streams{out: &out, err: &strings.Builder{}, Answer: Answer{JSON: asJSON}}
	err = (&Change{Yes: !dryRun}).inTurn(t.Context(), to, services, replaying,
		func(s *client.Service, _ func(int64)) (adminapi.Result, error) {
			of[s.Name].result.DryRun = dryRun
			return *of[s.Name].result, of[s.Name].err
		})
	return out.String(), err
}

type turn struct {
	result *adminapi.Result
	err    error
}

func did(count, failed int64, errs ...adminapi.Failure) turn {
	return turn{result: &adminapi.Result{Count: count, Failed: failed, Errors: errs}}
}

func noted(of turn, note string) turn {
	of.result.Note = note
	return of
}

// The exit code says how much of it is done, and the lines say where and why not.
func TestWhatAChangeComesTo(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	broken := func(count int64) turn { return turn{&adminapi.Result{Count: count}, gone} }
	refused := adminapi.Failure{Subject: "17", Code: "handler_failed", Detail: "boom"}
	const hint = "Nothing was changed. To do it, add: --yes --reason \"why\"\n"
	for name, c := range map[string]struct {
		dryRun                 bool
		customer, notification turn
		code                   int
		stdout                 string
	}{
		"all":      {false, did(2, 0), did(1, 0), 0, "Replayed 2 events of customer.\nReplayed 1 event of notification.\n"},
		"one side": {false, did(0, 0), did(1, 0), 0, "Replayed 1 event of notification.\n"},
		"nothing": {
			false, did(0, 0), did(0, 0), 0, "Replayed 0 events of customer.\nReplayed 0 events of notification.\n",
		},
		"dry": {true, did(1, 0), did(0, 0), 0, "Would replay 1 event of customer.\n" + hint},
		"dry, nothing": {
			true, did(0, 0), did(0, 0), 0, "Would replay 0 events of customer.\nWould replay 0 events of notification.\n",
		},
		"some": {
			false, did(1, 0), did(0, 1, refused), exitPartial,
			"Replayed 1 event of customer.\nNOT DONE         CODE            WHY\n" +
				"notification/17  handler_failed  boom\n",
		},
		"more than are listed": {
			false, did(1, 0), did(0, 7, refused), exitPartial,
			"Replayed 1 event of customer.\nNOT DONE         CODE            WHY\n" +
				"notification/17  handler_failed  boom\n" +
				"6 more are not done. Only the first 100 of each service are listed.\n",
		},
		"notes": {
			false, noted(did(1, 0), "They follow."), noted(did(2, 0), "They follow."), 0,
			"Replayed 1 event of customer.\nReplayed 2 events of notification.\nThey follow.\n",
		},
		"dry, notes": {
			true, noted(did(1, 0), "No handler was tried."), did(0, 0), 0,
			"Would replay 1 event of customer.\nNo handler was tried.\n" + hint,
		},
		"none": {
			false, did(0, 0), did(0, 1, adminapi.Failure{Subject: "line 3", Code: "c", Detail: "d"}), exitRefused,
			"Replayed 0 events of customer.\nReplayed 0 events of notification.\nNOT DONE  CODE  WHY\nline 3    c     d\n",
		},
		"the second broke":           {false, did(2, 0), broken(0), exitPartial, "Replayed 2 events of customer.\n"},
		"the second broke in it":     {false, did(0, 0), broken(3), exitPartial, "Replayed 3 events of notification.\n"},
		"the first broke":            {false, broken(0), did(1, 0), service.ExitFailure, ""},
		"a dry run broke":            {true, did(2, 0), broken(2), service.ExitFailure, ""},
		"the first broke half way":   {false, broken(1), did(9, 0), exitPartial, "Replayed 1 event of customer.\n"},
		"the second broke, none yet": {false, did(0, 0), broken(0), service.ExitFailure, ""},
	} {
		of := map[string]turn{"customer": c.customer, "notification": c.notification}
		stdout, err := turns(t, c.dryRun, false, of)
		require.Equal(t, c.code, exitCode(err), name)
		require.Equal(t, c.stdout, stdout, name)
		asJSON, err := turns(t, c.dryRun, true, of)
		require.Equal(t, c.code, exitCode(err), name)
		require.Equal(t, c.stdout == "", asJSON == "", "%s: a document where there is something to say", name)
	}
}

// A command that is stopped says so, for every result of its last call.
func TestAStoppedChangeIsNotDone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	one, err := client.New("customer", "127.0.0.1:1", "t")
	require.NoError(t, err)
	err = (&Change{Yes: true}).inTurn(ctx, &streams{out: &out, err: &out}, []*client.Service{one}, replaying,
		func(*client.Service, func(int64)) (adminapi.Result, error) { return adminapi.Result{Count: 1}, nil })
	require.Equal(t, exitPartial, exitCode(err))
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, out.String(), "Replayed 1 event")
}

// What is done so far is told now and then.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		show := (&streams{err: &out}).progress("customer")
		show(1)
		<-time.After(progressEvery)
		show(2)
		show(3)
		require.Equal(t, "customer: 2 done\n", out.String())
	})
}

// What a change comes to in a service that "make run" runs beside the two, such as an example, is said as well.
func TestAChangeInAnotherServiceIsSaid(t *testing.T) {
	t.Parallel()
	said, err := turns(t, false, false, map[string]turn{"order": did(2, 0), "customer": did(1, 0)})
	require.NoError(t, err)
	require.Equal(t, "Replayed 1 event of customer.\nReplayed 2 events of order.\n", said)
}
