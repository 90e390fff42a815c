package kafkatest

import (
	"cmp"
	"os"
)

// EdgeVariable chooses the edge of the services under test: batch, the default, or watermill.
const EdgeVariable = "TWINBOX_TEST_EDGE"

// Edge is the setting that [EdgeVariable] stands for. What one edge alone promises is tested with that one.
func Edge() string { return "KAFKA_EDGE=" + cmp.Or(os.Getenv(EdgeVariable), "batch") }

// OnBatchEdge is the setting for what only the batch edge promises; docs/from-watermill.md has the list.
const OnBatchEdge = "KAFKA_EDGE=batch"
