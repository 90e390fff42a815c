package inbox

import (
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/cloudevent"
)

// originOf is where the record lies that the message was made of; false for a message that no broker delivered. Of a
// subscriber that knows nothing of [cloudevent.WithOrigin] it is what its own package and Watermill's Router say: the
// group is [Config.Group] then, and a dead letter's headers are the message's: of a name that came twice the last one,
// in the order of the names. The record's key is put into the message, whose unmarshaler may have left it out.
func (in *Inbox) originOf(msg *message.Message) (o cloudevent.Origin, known bool) {
	ctx := msg.Context()
	if o, known = cloudevent.OriginFrom(ctx); known {
		return o, true
	}
	if o, known = cloudevent.ForeignOrigin(ctx); !known {
		return o, false
	}
	o.Group = in.cfg.Group
	delete(msg.Metadata, cloudevent.KeyMetadata)
	if len(o.Key) > 0 {
		msg.Metadata[cloudevent.KeyMetadata] = string(o.Key)
	}
	return o, true
}
