package inboxtest

import (
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Handlers are typed ones in an [inbox.Mux], or a plain one from [Plain].
type Handlers interface {
	Accepts(eventType string) bool
	HandleMessage(msg *message.Message) ([]*message.Message, error)
}

// Plain returns a plain Watermill handler of events of the types.
func Plain(handler message.NoPublishHandlerFunc, types ...string) Handlers {
	return plain{handler, types}
}

type plain struct {
	handler message.NoPublishHandlerFunc
	types   []string
}

func (p plain) Accepts(eventType string) bool { return slices.Contains(p.types, eventType) }

func (p plain) HandleMessage(msg *message.Message) ([]*message.Message, error) {
	return nil, p.handler(msg)
}
