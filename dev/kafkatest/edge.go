package kafkatest

import (
	"cmp"
	"os"
	"testing"
)

// EdgeVariable chooses the edge of the services under test: batch, the default, or watermill.
const EdgeVariable = "TWINBOX_TEST_EDGE"

// Edge is the setting that [EdgeVariable] stands for. What one edge alone promises is tested with that one.
func Edge() string { return "KAFKA_EDGE=" + cmp.Or(os.Getenv(EdgeVariable), "batch") }

// OnBothEdges runs the test on each edge, or on the one that [EdgeVariable] chooses. The setting goes behind [Edge]'s.
func OnBothEdges(t *testing.T, test func(t *testing.T, setting string)) {
	t.Helper()
	edges := []string{"batch", "watermill"}
	if chosen := os.Getenv(EdgeVariable); chosen != "" {
		edges = []string{chosen}
	}
	for _, edge := range edges {
		t.Run(edge, func(t *testing.T) { test(t, "KAFKA_EDGE="+edge) })
	}
}

// OnBatchEdge is the setting for what only the batch edge promises; docs/from-watermill.md has the list.
const OnBatchEdge = "KAFKA_EDGE=batch"
