package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// benchmarks are the steps of the full plans, and the parts that can be asked for.
var benchmarks = map[string]struct {
	steps func(only []string) []step
	parts []string
}{
	"relay": {
		func(only []string) []step { return (&relayBench{plan: fullPlan}).steps(only) },
		[]string{"drain", "signups", "latency", "history", "cost", "traces"},
	},
	"inbox": {
		func(only []string) []step { return (&inboxBench{plan: fullInboxPlan}).steps(only) },
		[]string{"rate", "duplicates", "history"},
	},
	"failover": {
		func(only []string) []step { return (&failoverBench{plan: fullFailoverPlan}).steps(only) },
		[]string{"idle", "kill", "restart", "consumer", "freeze", "penalty"},
	},
	"path": {
		func(only []string) []step { return (&pathBench{plan: fullPathPlan}).steps(only) },
		[]string{"latency", "held"},
	},
}

// Each part that can be asked for is steps of the whole, all parts together are all of it, and no step is there twice:
// what is measured by itself is what is measured among the others.
func TestThePartsAreTheWhole(t *testing.T) {
	t.Parallel()
	for name, b := range benchmarks {
		var parts []string
		for _, part := range b.parts {
			of := namesOf(b.steps([]string{part}))
			require.NotEmpty(t, of, "%s %s", name, part)
			parts = append(parts, of...)
		}
		all := namesOf(b.steps(nil))
		require.Equal(t, all, parts, name)
		seen := map[string]bool{}
		for _, s := range all {
			require.False(t, seen[s], "%s: %s", name, s)
			seen[s] = true
		}
		require.Equal(t, all, namesOf(b.steps(b.parts)), name)
		for _, s := range b.steps(nil) {
			require.Positive(t, s.weight, "%s: %s is not seen on the bar", name, s.name)
			require.NotNil(t, s.run, s.name)
		}
	}
}

func namesOf(steps []step) []string {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.name
	}
	return names
}

// A variant that is measured in some rounds is so in the first ones, so that a ratio of two is of the same rounds.
func TestRoundsAreNotSkipped(t *testing.T) {
	t.Parallel()
	const rounds = 5
	for name, b := range benchmarks {
		of := map[string][]int{} // the rounds of each variant of a part
		for _, s := range namesOf(b.steps(nil)) {
			part, variant, _ := strings.Cut(s, ": ")
			for round := 1; round <= rounds; round++ {
				if measured, found := strings.CutSuffix(part, fmt.Sprintf(" %d/%d", round, rounds)); found {
					of[measured+": "+variant] = append(of[measured+": "+variant], round)
				}
			}
		}
		require.NotEmpty(t, of, name)
		for variant, in := range of {
			require.Equal(t, []int{1, 2, 3, 4, 5}[:len(in)], in, "%s %s", name, variant)
		}
	}
}

func TestWithoutStock(t *testing.T) {
	t.Parallel()
	plan := fullPlan
	all := namesOf((&relayBench{plan: plan}).steps(nil))
	plan.NoStock = true
	var ours []string
	for _, s := range all {
		if !strings.Contains(s, "stock") {
			ours = append(ours, s)
		}
	}
	require.Less(t, len(ours), len(all))
	require.Equal(t, ours, namesOf((&relayBench{plan: plan}).steps(nil)))
}

// Of a Kafka that runs elsewhere only what reaches it is measured, unless more is asked for.
func TestPartsOfAKafkaElsewhere(t *testing.T) {
	t.Parallel()
	require.Empty(t, (&RelayCommand{}).parts(), "all")
	require.Equal(t, []string{"drain", "latency"}, (&RelayCommand{options: options{Brokers: "a:1"}}).parts())
	asked := RelayCommand{options: options{Brokers: "a:1"}, Only: []string{"cost"}}
	require.Equal(t, []string{"cost"}, asked.parts())
}
