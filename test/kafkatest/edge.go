package kafkatest

import (
	"os"
	"slices"
	"testing"
)

// EdgeVariable chooses the edge of the services under test: batch, the default, or watermill.
const EdgeVariable = "TWINBOX_TEST_EDGE"

// edges are those that services know, the default first.
var edges = []string{
	"batch",
	"watermill",
}

// Setting is the variable that chooses an edge; empty where there is but one.
func Setting(edge string) (setting string) {
	setting = "KAFKA_EDGE=" + edge
	return setting
}

// Edge is the setting that [EdgeVariable] stands for. What one edge alone promises is tested with that one.
func Edge() string { return Setting(edge()) }

func edge() string {
	if chosen := os.Getenv(EdgeVariable); slices.Contains(edges, chosen) {
		return chosen
	}
	return edges[0]
}

// OnBothEdges runs the test on each edge, or on the one that [EdgeVariable] chooses. The setting goes behind [Edge]'s.
func OnBothEdges(t *testing.T, test func(t *testing.T, setting string)) {
	t.Helper()
	for _, edge := range edges {
		if chosen := os.Getenv(EdgeVariable); chosen == "" || chosen == edge {
			t.Run(edge, func(t *testing.T) { test(t, Setting(edge)) })
		}
	}
}

// OnBatchEdge is the setting for what only the batch edge promises; docs/from-watermill.md has the list.
const OnBatchEdge = "KAFKA_EDGE=batch"
