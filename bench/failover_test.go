package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// smokeFailoverPlan is everything once, as small as it can be.
var smokeFailoverPlan = failoverPlan{
	Rounds: 1, Freezes: 1, Penalties: 1, Rate: 50, Lease: 2 * time.Second, Outage: 500 * time.Millisecond,
	Settle: 100 * time.Millisecond, IdleFor: 3 * time.Second, NoSync: true,
}

func TestFailoverBenchmarkMeasuresEverything(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), t.TempDir()
	var progress, table bytes.Buffer
	to := streams{out: &table, err: &progress}
	c := FailoverCommand{options: options{Dir: dir, Out: out}}
	report, err := c.measure(t.Context(), to, smokeFailoverPlan)
	require.NoError(t, err, progress.String())
	require.NoError(t, c.show(report, true, to))
	require.Contains(t, table.String(), "SIGSTOP of the leading relay, p95")

	content, err := os.ReadFile(filepath.Join(out, "failover.json"))
	require.NoError(t, err)
	require.NotContains(t, string(content), dir, "no paths in a result")
	var result map[string]any
	require.NoError(t, json.Unmarshal(content, &result))
	for _, key := range []string{
		"relay_kill_p95_ms", "relay_restart_p95_ms", "relay_freeze_p95_ms", "consumer_kill_p95_ms", "takeover_penalty_s",
	} {
		require.IsType(t, float64(0), result[key], key)
	}
	require.GreaterOrEqual(t, result["relay_freeze_p95_ms"], float64(1000), "a lease has to run out")
	for _, service := range []string{"customer", "notification"} {
		require.Positive(t, result["idle_statements_per_s"].(map[string]any)[service])
		if runtime.GOOS == "linux" {
			require.Contains(t, result["idle_cpu_percent"], service)
		}
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "the database's files are gone")
}

func TestP95(t *testing.T) {
	t.Parallel()
	require.Empty(t, p95(nil), "not measured")
	require.Equal(t, []float64{7}, p95([]float64{7}))
	var rounds []float64
	for i := range 20 {
		rounds = append(rounds, float64(20-i))
	}
	require.Equal(t, []float64{19}, p95(rounds))
}

// What a process has used is what the kernel says of it, and a tree has its children's too.
func TestCPUOfProcesses(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the figure is measured where there is /proc")
	}
	fields, err := statFields("/proc/self/stat")
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(os.Getppid()), fields[statParent])
	before, err := cpuSeconds(os.Getpid(), false)
	require.NoError(t, err)
	testkit.Until(t, func() bool { // until this loop has used some
		after, err := cpuSeconds(os.Getpid(), false)
		require.NoError(t, err)
		return after > before
	})
	tree, err := cpuOfTree(strconv.Itoa(os.Getpid()))
	require.NoError(t, err)
	require.GreaterOrEqual(t, tree, before)
}
