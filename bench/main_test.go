package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/kafkatest"
)

// go test ./bench -update.
var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { kafkatest.Main(m) }

// smokePlans are every measurement as small as it can be.
var (
	smokeLatency = latencyPlan{For: 100 * time.Millisecond, Warmup: 5}
	smokePlans   = map[string]func(*stage) *benchmark{
		"relay": func(st *stage) *benchmark {
			return newRelay(st, relayPlan{
				Backlog: 600, SmallBacklog: 60, SignupFor: 20 * time.Millisecond, Latency: smokeLatency,
			})
		},
		"inbox": func(st *stage) *benchmark { return newInbox(st, inboxPlan{Slow: 300, Fast: 600, Keys: 96}) },
		"path": func(st *stage) *benchmark {
			return newPath(st, pathPlan{
				Latency: smokeLatency, Lease: 2 * time.Second, Settle: 100 * time.Millisecond, IdleFor: 2 * time.Second,
			})
		},
	}
)

// A busy machine, or a system without /proc, may have no figure for these goals.
var maybe = map[string]bool{
	"p50_ms": true, "p99_ms": true, "postgresql_cpu_over_stock": true, "idle_cpu_percent.customer": true,
	"idle_cpu_percent.notification": true,
}

func TestBenchmarksMeasureEverything(t *testing.T) {
	t.Parallel()
	for name, on := range smokePlans {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, out := t.TempDir(), t.TempDir()
			var table, progress bytes.Buffer
			to := streams{&table, &progress}
			o := options{Dir: dir, Out: out, Rounds: 1, NoSync: true}
			r, err := measure(t.Context(), o, to, nil, on)
			require.NoError(t, err, progress.String())
			require.NoError(t, o.show(r, true, to))
			require.Contains(t, table.String(), "load average")

			content, err := os.ReadFile(filepath.Join(out, name+".json"))
			require.NoError(t, err)
			require.NotContains(t, string(content), dir, "no paths in a result")
			var result struct {
				Goals []struct {
					ID     string   `json:"id"`
					Median *float64 `json:"median"`
				} `json:"goals"`
				Groups []struct {
					Figures []struct {
						Rounds []float64 `json:"rounds"`
						Loads  []float64 `json:"load_averages"`
					} `json:"figures"`
				} `json:"groups"`
			}
			require.NoError(t, json.Unmarshal(content, &result))
			require.NotEmpty(t, result.Goals)
			for _, g := range result.Goals {
				if !maybe[g.ID] {
					require.NotNil(t, g.Median, g.ID)
					require.Positive(t, *g.Median, g.ID)
				}
				if g.ID == "relay_freeze_ms" {
					require.GreaterOrEqual(t, *g.Median, 1000.0, "a lease has to end")
				}
			}
			for _, g := range result.Groups {
				for _, f := range g.Figures {
					require.Len(t, f.Rounds, 1)
					require.Len(t, f.Loads, 1)
				}
			}
			require.FileExists(t, filepath.Join(out, name+".svg"))
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left, "the database's files are gone")
		})
	}
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
	_, err := measure(ctx, options{Dir: dir, NoSync: true, Rounds: 1}, to, []string{"signups"}, smokePlans["relay"])
	require.ErrorContains(t, err, "signups 1/1: bare")
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
		"unknown part":  {[]string{"path", "--only=held"}, service.ExitUsage, "must be one of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			require.Equal(t, tc.exit, run(t.Context(), tc.args, streams{&out, &out}))
			require.Contains(t, out.String(), tc.out)
		})
	}
}
