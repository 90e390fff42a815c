package event

import (
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Attributes are the headers of this project's events, in writing order.
var Attributes = []string{
	HeaderSource, HeaderType, HeaderSpecVersion, HeaderTime, HeaderSubject, HeaderVersion, HeaderDataSchema,
	HeaderPosition, HeaderContentType, HeaderTraceParent, HeaderTraceState, HeaderCorrelationID, HeaderCausationID,
}

// Causes are the attributes among an event's extensions.
var Causes = Attributes[len(Attributes)-4:]

// IsAttribute reports whether a metadata name is for a field of the [Event] or for transport state.
func IsAttribute(name string) bool {
	return name == HeaderID || name == HeaderWatermillID || name == KeyMetadata ||
		slices.Contains(Attributes, name) && !slices.Contains(Causes, name)
}

// MessageHeaders returns the headers of a message's record: the id, the [Attributes], the others by name.
func MessageHeaders(msg *message.Message) []Header {
	headers := make([]Header, 0, len(msg.Metadata)+2)
	if msg.UUID != "" {
		headers = append(headers, Header{HeaderID, []byte(msg.UUID)}, Header{HeaderWatermillID, []byte(msg.UUID)})
	}
	var others []string
	for name := range msg.Metadata {
		if !IsAttribute(name) && !slices.Contains(Causes, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range slices.Concat(Attributes, others) {
		if value, ok := msg.Metadata[name]; ok {
			headers = append(headers, Header{name, []byte(value)})
		}
	}
	return headers
}

// RecordMessage returns the message of a record. The last of repeated headers counts.
func RecordMessage(key []byte, headers []Header, value []byte) *message.Message {
	msg := message.NewMessage("", value)
	msg.Metadata = make(message.Metadata, len(headers)+1)
	for _, h := range headers {
		msg.Metadata[h.Name] = string(h.Value)
	}
	msg.UUID = msg.Metadata[HeaderID]
	for _, name := range []string{HeaderID, HeaderWatermillID, KeyMetadata} {
		delete(msg.Metadata, name)
	}
	if len(key) > 0 {
		msg.Metadata[KeyMetadata] = string(key)
	}
	return msg
}
