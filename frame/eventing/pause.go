package eventing

import (
	"context"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/inbox/pause"
	"example.com/twinbox/engine/kafka/progress"
	"example.com/twinbox/frame/service"
)

// pausesEvery is how often an instance asks whether a consumer of it is paused.
const pausesEvery = 2 * time.Second

func newGates(n *Node) *pause.Gates {
	return pause.NewGates(func(ctx context.Context) (map[string]pause.Paused, error) { return pause.Read(ctx, n.Pool) })
}

// watchPauses opens and shuts the node's gates. That the database is away its circuit says.
func watchPauses(n *Node) func(context.Context) error {
	return func(ctx context.Context) error {
		n.gates.Watch(ctx, pausesEvery, n.dependencies.database.Report)
		return nil
	}
}

// LookForPauses asks now, after an operator has paused a consumer or let it go on.
func (n *Node) LookForPauses() { n.gates.Look() }

// awaitResume waits while the consumer is paused. That is no stall of the partition, and nothing fails.
func awaitResume(ctx context.Context, gate *pause.Gate) error {
	if gate.IsOpen() {
		return nil
	}
	defer progress.Pausing(ctx, nil)()
	return gate.Wait(ctx)
}

// oneUnlessPaused handles a message when the consumer is not paused.
func (c *consumer) oneUnlessPaused(handle message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		if err := awaitResume(msg.Context(), c.gate); err != nil {
			return nil, err
		}
		return handle(msg)
	}
}

// consumerPaused names the consumer that has been paused for longest.
func (d *diagnosis) consumerPaused(ctx context.Context) (service.Cause, error) {
	if len(d.node.consumers) == 0 {
		return service.Cause{}, nil
	}
	paused, err := pause.Read(ctx, d.node.Pool)
	var first pause.Paused
	var name string
	n := 0
	for _, c := range d.node.consumers {
		if p, is := paused[c.Name]; is {
			if n++; name == "" || p.Since.Before(first.Since) {
				name, first = c.Name, p
			}
		}
	}
	if err != nil || name == "" {
		return service.Cause{}, err
	}
	return service.Cause{
		Code: CauseConsumerPaused, Since: first.Since, Command: "twinbox consumer resume " + name,
		Figures:  map[string]float64{"consumers": float64(n), "seconds": time.Since(first.Since).Seconds()},
		Sentence: fmt.Sprintf("%s has been paused by %s since %s: %s.", name, first.By, clock(first.Since), first.Reason),
	}, nil
}
