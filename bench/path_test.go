package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/domain"
)

// smokePathPlan is everything once, as small as it can be.
var smokePathPlan = pathPlan{
	Rounds: 1, Rates: []float64{1000}, LatencyFor: 100 * time.Millisecond, Warm: 10,
	ProbeFrom: 2000, ProbeFor: 50 * time.Millisecond, CloseEnough: 4, HoldFor: 100 * time.Millisecond,
	KeepDatabases: true, NoSync: true,
}

func TestPathBenchmarkMeasuresEverything(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), t.TempDir()
	var progress bytes.Buffer
	to := streams{out: new(bytes.Buffer), err: &progress}
	c := PathCommand{options: options{Dir: dir, Out: out}}
	report, err := c.measure(t.Context(), to, smokePathPlan)
	require.NoError(t, err, progress.String())
	require.NoError(t, c.save(report, true, to))

	content, err := os.ReadFile(filepath.Join(out, "path.json"))
	require.NoError(t, err)
	require.NotContains(t, string(content), dir, "no paths in a result")
	var result map[string]any
	require.NoError(t, json.Unmarshal(content, &result))
	for _, key := range []string{ // null where a slow machine did not keep up
		"p50_ms", "p99_ms", "p999_ms", "due_p50_ms", "due_p99_ms", "due_p999_ms", "held_per_s", "held_stock_per_s",
		"held_over_stock", "postgresql_cpu_over_stock",
	} {
		require.Contains(t, result, key)
	}
	for _, line := range pathLines {
		require.Contains(t, string(content), `"held.`+line.name+`"`)
		require.Contains(t, string(content), `"path.1000.`+line.name+`.arrived"`)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "the database's files are gone")
}

func TestSearchFindsWhatIsHeld(t *testing.T) {
	t.Parallel()
	const closeEnough = 1.1
	for limit, first := range map[float64]float64{10_000: 500, 700: 500, 499: 500, 60: 500, 3: 1} {
		var tried []float64
		found, err := search(first, closeEnough, func(rate float64) (bool, error) {
			tried = append(tried, rate)
			return rate <= limit, nil
		})
		require.NoError(t, err)
		require.LessOrEqual(t, found, limit)
		require.Greater(t, found*closeEnough, limit, tried)
		require.Less(t, len(tried), 12)
	}
	found, err := search(500, closeEnough, func(float64) (bool, error) { return false, nil })
	require.NoError(t, err)
	require.Zero(t, found, "a line that holds nothing ends the search")

	broken := errors.New("broken")
	_, err = search(500, closeEnough, func(float64) (bool, error) { return false, broken })
	require.ErrorIs(t, err, broken)
}

func TestConfirmGoesDown(t *testing.T) {
	t.Parallel()
	held, err := confirm(1000, func(rate float64) (bool, error) { return rate < 900, nil })
	require.NoError(t, err)
	require.InDelta(t, 1000*stepDown*stepDown, held, 1)
	held, err = confirm(1000, func(float64) (bool, error) { return false, nil })
	require.NoError(t, err)
	require.Zero(t, held)
}

// passed is a passage of n signups, one every 10 ms, each of which took what took says.
func passed(n int, bound time.Duration, took func(int) time.Duration) (*passage, *arrivals) {
	a := newArrivals()
	p := &passage{began: time.Now(), bound: bound}
	for i := range n {
		due := time.Duration(i) * 10 * time.Millisecond
		user := domain.UserID(eventID(i))
		p.due, p.users = append(p.due, due), append(p.users, user)
		p.committed = append(p.committed, p.began.Add(due+time.Millisecond))
		p.end = p.began.Add(due)
		a.at[user] = p.end.Add(took(i))
	}
	return p, a
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		took func(int) time.Duration
		held bool
	}{
		"in time":              {func(int) time.Duration { return 5 * ms }, true},
		"one is late":          {func(i int) time.Duration { return time.Duration(i/499) * time.Second }, true},
		"two in a hundred":     {func(i int) time.Duration { return time.Duration(i%50/49) * 600 * ms }, false},
		"a queue that grows":   {func(i int) time.Duration { return time.Duration(i) * ms * 4 / 5 }, false},
		"the last one is lost": {func(i int) time.Duration { return time.Duration(i/499) * 3 * time.Second }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, a := passed(500, heldBound, tc.took)
			held, why := p.verdict(a)
			require.Equal(t, tc.held, held, why)
		})
	}
}

func TestLatenciesCountFromCommitAndFromDue(t *testing.T) {
	t.Parallel()
	p, a := passed(3, heldBound, func(i int) time.Duration { return time.Duration(2*i) * time.Millisecond })
	fromCommit, fromDue := p.latencies(a)
	require.Equal(t, []time.Duration{0, 1e6, 3e6}, fromCommit, "faster than the commit's answer is zero")
	require.Equal(t, []time.Duration{0, 2e6, 4e6}, fromDue)
}

func TestArrivalsAreAwaitedAndCountedOnce(t *testing.T) {
	t.Parallel()
	a := newArrivals()
	waited := make(chan error)
	go func() { waited <- a.await(t.Context(), 2) }()
	for _, user := range []domain.UserID{"a", "a", "b"} {
		a.note(user)
	}
	require.NoError(t, <-waited)
	require.Equal(t, 2, a.count())
	require.NoError(t, a.await(t.Context(), 1), "there already")
}
