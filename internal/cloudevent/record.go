package cloudevent

import (
	"maps"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"
)

// RecordMessage is the message that a subscriber makes of a record: of a header that stands twice the last value, the
// id from [HeaderID], the record key under [KeyMetadata]. It never fails; whether it is an event, [FromMessage] says.
func RecordMessage(key []byte, headers []Header, value []byte) *message.Message {
	msg := message.NewMessage("", value)
	for _, h := range headers {
		if h.Name == HeaderID {
			msg.UUID = string(h.Value)
			continue
		}
		msg.Metadata[h.Name] = string(h.Value)
	}
	delete(msg.Metadata, KeyMetadata)
	if len(key) > 0 {
		msg.Metadata[KeyMetadata] = string(key)
	}
	return msg
}

// MessageHeaders are the headers of a message that no broker delivered, in the order of their names.
func MessageHeaders(msg *message.Message) []Header {
	headers := make([]Header, 0, len(msg.Metadata)+1)
	if msg.UUID != "" {
		headers = append(headers, Header{HeaderID, []byte(msg.UUID)})
	}
	for _, name := range slices.Sorted(maps.Keys(msg.Metadata)) {
		if name != KeyMetadata && name != HeaderID {
			headers = append(headers, Header{name, []byte(msg.Metadata[name])})
		}
	}
	return headers
}
