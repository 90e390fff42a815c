package eventing

import (
	"context"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/kafka/admin"
)

// lookedAt is how many of a partition's newest records are compared with the database. Others may have written behind
// the last of this service's events, but hardly so much to every partition.
const lookedAt = 50

// restorer finds out what a restore of the service's database took away.
type restorer struct {
	node   *Node
	topics []string // of the service's events
}

func newRestorer(n *Node) *restorer {
	r := &restorer{node: n}
	for _, topic := range n.setup.Topics {
		if !strings.HasPrefix(topic.Name, deadletter.CopyPrefix) {
			r.topics = append(r.topics, topic.Name)
		}
	}
	return r
}

// newest is what the relay compares the database with.
func (r *restorer) newest(ctx context.Context) ([]cloudevent.Event, error) {
	var events []cloudevent.Event
	err := r.each(ctx, lookedAt, func(e cloudevent.Event) error {
		events = append(events, e)
		return nil
	})
	return events, err
}

// each reads the events that this service can have written: from its source, and such that they keep the contract.
func (r *restorer) each(ctx context.Context, last int64, do func(cloudevent.Event) error) error {
	setup := r.node.setup
	for _, topic := range r.topics {
		err := admin.ReadLog(ctx, setup.Config.Client(setup.Service), topic, last, func(m *message.Message) error {
			event, err := cloudevent.FromMessage(m)
			if err != nil || event.Source != setup.Source || event.Version == 0 || setup.Validate(event) != nil {
				return nil //nolint:nilerr // another program wrote it
			}
			event.Topic = topic
			return do(event)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
