package eventing

import (
	"context"
	"time"

	"example.com/twinbox/engine/inbox/pause"
	"example.com/twinbox/engine/kafka/progress"
)

// pausesEvery is how often an instance asks whether a consumer of it is paused.
const pausesEvery = 2 * time.Second

func (n *Node) readPauses(ctx context.Context) (map[string]pause.Paused, error) {
	return pause.Read(ctx, n.Pool)
}

// watchPauses opens and shuts the node's gates. That the database is away its circuit says.
func (n *Node) watchPauses(ctx context.Context) error {
	n.gates.Watch(ctx, pausesEvery, n.dependencies.database.Report)
	return nil
}

// LookForPauses asks now, after an operator has paused a consumer or let it go on.
func (n *Node) LookForPauses() { n.gates.Look() }

// awaitResume waits while the consumer is paused. That is no stall of the partition, and nothing fails.
func (n *Node) awaitResume(ctx context.Context, consumer string) error {
	if n.gates.IsOpen(consumer) {
		return nil
	}
	defer progress.Pausing(ctx, nil)()
	return n.gates.Wait(ctx, consumer)
}
