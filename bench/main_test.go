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

// smokes are every measurement as small as it can be.
func smokes() map[string]*benchmark {
	latency := latencyPlan{For: 100 * time.Millisecond, Warmup: 5}
	return map[string]*benchmark{
		"relay": newRelay(&stage{}, relayPlan{
			Backlog: 200, SmallBacklog: 20, SignupFor: 20 * time.Millisecond, Latency: latency,
		}),
		"inbox": newInbox(&stage{}, inboxPlan{Slow: 96, Fast: 192, Keys: 48}),
		"path": newPath(&stage{}, pathPlan{
			Latency: latency, Lease: 3 * time.Second, Settle: 100 * time.Millisecond,
			IdleFor: 3 * time.Second, // a session of PostgreSQL adds to its statistics once a second
		}),
	}
}

// A busy machine, or a system without /proc, may have no figure for these goals.
var maybe = map[string]bool{
	"p50_ms": true, "p99_ms": true, "postgresql_cpu_over_stock": true, "idle_cpu_percent.customer": true,
	"idle_cpu_percent.notification": true,
}

func TestBenchmarksMeasureEverything(t *testing.T) {
	t.Parallel()
	for name, b := range smokes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, out := t.TempDir(), t.TempDir()
			var table, progress bytes.Buffer
			o := options{Dir: dir, Out: out, Rounds: 1, NoSync: true}
			r, err := b.measure(t.Context(), o, &progress)
			require.NoError(t, err, progress.String())
			require.NoError(t, o.show(r, &table))
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
	notes := writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("signups")) {
			cancel(errors.New("interrupt"))
		}
		return len(p), nil
	})
	o := options{Dir: dir, NoSync: true, Rounds: 1, Only: []string{"signups"}}
	_, err := smokes()["relay"].measure(ctx, o, notes)
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
		"no benchmark":           {nil, service.ExitUsage, "expected"},
		"unknown":                {[]string{"nothing"}, service.ExitUsage, "must be one of"},
		"negative":               {[]string{"relay", "--rounds=-1"}, service.ExitUsage, "--rounds"},
		"help":                   {[]string{"--help"}, service.ExitOK, "--brokers"},
		"unknown part":           {[]string{"path", "--only=held"}, service.ExitUsage, "path has no part held"},
		"brokers of another one": {[]string{"path", "--brokers=a:1"}, service.ExitUsage, "for relay"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			require.Equal(t, tc.exit, runCommand(t.Context(), tc.args, &out, &out))
			require.Contains(t, out.String(), tc.out)
		})
	}
}
