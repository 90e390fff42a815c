package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
)

// smokePlan is everything once, as small as it can be.
var smokePlan = relayPlan{
	Rounds: 1, Backlog: 600, StockBacklog: 60,
	Clients: []int{1, 8, 32}, SignupFor: 20 * time.Millisecond,
	Rates: []float64{100, 1000}, LatencyFor: 100 * time.Millisecond,
	History: []int{1_000, 3_000}, HistoryChunk: 2_000,
	Writes: 10, Alone: 600, StallFor: 50 * time.Millisecond, KeepDatabases: true, NoSync: true,
	Grace: time.Minute, // on a busy machine, too, every variant keeps up: the test is of the figures
}

func TestRelayBenchmarkMeasuresEverything(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), t.TempDir()
	var progress bytes.Buffer
	to := streams{out: new(bytes.Buffer), err: &progress}
	c := RelayCommand{options: options{Dir: dir, Out: out, Profile: filepath.Join(out, "profiles")}}
	report, err := c.measure(t.Context(), to, smokePlan)
	require.NoError(t, err, progress.String())
	require.NoError(t, c.save(report, true, to))

	for _, g := range newSheet(relayGroups()...).groups {
		for _, f := range g.Figures {
			require.Contains(t, measuredIDs(report), f.ID)
		}
	}
	content, err := os.ReadFile(filepath.Join(out, "relay.json"))
	require.NoError(t, err)
	var result struct {
		Stock     float64 `json:"ours_over_stock"`
		History   float64 `json:"history_ratio"`
		Foreign   float64 `json:"foreign_tx_ratio"`
		Signup    float64 `json:"signup_ratio_8"`
		P50       float64 `json:"p50_ms"`
		P99       float64 `json:"p99_ms"`
		OfCeiling float64 `json:"ours_over_ceiling"`
	}
	require.NoError(t, json.Unmarshal(content, &result))
	require.NotContains(t, string(content), dir, "no paths in a result")
	for _, v := range []float64{
		result.Stock, result.History, result.Foreign, result.Signup, result.P99, result.OfCeiling,
	} {
		require.Positive(t, v)
	}
	require.GreaterOrEqual(t, result.P99, result.P50)
	for _, name := range []string{"cpu-ours.pprof", "cpu-ceiling.pprof"} {
		require.FileExists(t, filepath.Join(out, "profiles", name))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "the database's files are gone")
}

func measuredIDs(r *relayReport) []string {
	var ids []string
	for _, g := range r.Groups {
		for _, f := range g.Figures {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

func TestCtrlCStopsEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	to := streams{out: new(bytes.Buffer), err: writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("signups")) {
			cancel(errors.New("interrupt"))
		}
		return len(p), nil
	})}
	_, err := (&RelayCommand{options: options{Dir: dir}, Only: []string{"signups"}}).measure(ctx, to, smokePlan)
	require.ErrorContains(t, err, "signups 1/1: signup, bare, 1 clients: interrupt")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestUsage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		exit int
		out  string
	}{
		"no command":    {nil, service.ExitUsage, "expected"},
		"unknown":       {[]string{"nothing"}, service.ExitUsage, "unexpected argument"},
		"negative":      {[]string{"relay", "--rounds=-1"}, service.ExitFailure, "must be positive"},
		"help":          {[]string{"--help"}, service.ExitOK, "relay"},
		"relay's flags": {[]string{"relay", "--help"}, service.ExitOK, "--brokers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			require.Equal(t, tc.exit, run(t.Context(), tc.args, streams{out: &out, err: &out}))
			require.Contains(t, out.String(), tc.out)
		})
	}
}
