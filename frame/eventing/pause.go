package eventing

import (
	"context"
	"time"

	"example.com/twinbox/engine/inbox/pause"
	"example.com/twinbox/engine/kafka/progress"
)

// pausesEvery is how often an instance asks whether a consumer of it is paused.
const pausesEvery = 2 * time.Second

// newGates are shut until it is known which consumers are paused. That the database is away its circuit says.
func newGates(n *Node) *pause.Gates {
	return pause.NewGates(func(ctx context.Context) (map[string]pause.Paused, error) { return pause.Read(ctx, n.Pool) },
		pausesEvery, n.dependencies.database.Report)
}

// awaitResume waits while the consumer is paused. That is no stall of the partition, and nothing fails.
func awaitResume(ctx context.Context, gates *pause.Gates, consumer string) error {
	if gates.IsOpen(consumer) {
		return nil
	}
	defer progress.Pausing(ctx, nil)()
	return gates.Wait(ctx, consumer)
}
