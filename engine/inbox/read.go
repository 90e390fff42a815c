package inbox

import (
	"example.com/twinbox/engine/failure"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
)

// originOf is where the record lies that the message was made of; false for a message that no broker delivered. Of a
// subscriber that knows nothing of [cloudevent.WithOrigin] it is what its own package and Watermill's Router say: the
// group is [Config.Group] then, and a dead letter's headers are the message's: of a name that came twice the last one,
// in the order of the names. The record's key is put into the message, whose unmarshaler may have left it out.
func (r *reader) originOf(msg *message.Message) (o cloudevent.Origin, known bool) {
	ctx := msg.Context()
	if o, known = cloudevent.OriginFrom(ctx); known {
		return o, true
	}
	if o, known = cloudevent.ForeignOrigin(ctx); !known {
		return o, false
	}
	o.Group = r.cfg.Group
	delete(msg.Metadata, cloudevent.KeyMetadata)
	if len(o.Key) > 0 {
		msg.Metadata[cloudevent.KeyMetadata] = string(o.Key)
	}
	return o, true
}

// reader makes items of messages.
type reader struct{ cfg Config }

// read finds out what event it is, and whether there is a handler for it. It does not look into the payload.
func (r *reader) read(it *item, msg *message.Message, next message.HandlerFunc) {
	it.ctx, it.msg, it.next, it.outcome = msg.Context(), msg, next, Applied
	it.origin, _ = r.originOf(msg)
	it.event, it.invalid = cloudevent.FromMessage(msg)
	it.waited = it.waited || it.partition.hasWaited(r.cfg.GapWait)
	switch it.decoded = it.invalid == nil; {
	case !it.decoded:
		it.invalid, it.outcome = failure.AsPermanent(it.invalid), Failed
	case !r.cfg.Handlers.Accepts(it.event.Type):
		it.ignored, it.outcome = true, Ignored
	default:
		it.entry = newEntry(it.event, it.origin)
	}
}

// check holds the events against their contract, up to the first one that breaks it. It returns those before it.
func (r *reader) check(items []*item) []*item {
	for i, it := range items {
		if it.ignored {
			continue
		}
		if err := r.cfg.Validate(it.event); err != nil {
			it.invalid, it.outcome = failure.AsPermanent(err), Failed
			return items[:i]
		}
	}
	return items
}
