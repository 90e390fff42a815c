package eventing

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/engine/kafka/admin"
	"example.com/twinbox/engine/outbox"
)

// relayEvents publishes, and beside it asks once whether the topics take what may be added: an event that the outbox
// accepts and its topic refuses would park its key. The relay does not wait for the answer: there may be no broker yet.
func (n *Node) relayEvents(ctx context.Context) error {
	together, ctx := errgroup.WithContext(ctx)
	together.Go(func() error { return n.awaitSizes(ctx) })
	together.Go(func() error { return n.relay.Run(ctx) })
	return together.Wait()
}

// awaitSizes returns an error if a topic that exists takes less than the largest event. A limit that is lowered later
// parks the keys that exceed it.
func (n *Node) awaitSizes(ctx context.Context) error {
	names := make([]string, len(n.setup.Topics))
	for i, topic := range n.setup.Topics {
		names[i] = topic.Name
	}
	largest := n.setup.Config.Outbox.MaxEventBytes
	err := n.await(ctx, "sizes of topics", func(ctx context.Context) error {
		sizes, err := admin.ReadTopicSettings(ctx, n.setup.Config.Client(n.setup.Service), names...)
		if err != nil {
			return err
		}
		var refused outbox.CheckError
		for _, name := range names {
			if size, exists := sizes[name]; exists && size.MaxBytes < largest {
				refused.Problems = append(refused.Problems, outbox.Problem{
					Code:   "max_event_bytes",
					Detail: fmt.Sprintf("%s takes %d bytes, an event may have %d", name, size.MaxBytes, largest),
				})
			}
		}
		if len(refused.Problems) > 0 {
			return &uselessError{&refused}
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
