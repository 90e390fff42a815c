// Package codec maps messages to records and back: which headers the record of an event has, in which order, and what
// is made of one that is read.
package codec

import (
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
)

// Attributes are the headers that every event of this project has, in the order in which they are written.
var Attributes = []string{
	cloudevent.HeaderSource, cloudevent.HeaderType, cloudevent.HeaderSpecVersion, cloudevent.HeaderTime,
	cloudevent.HeaderSubject, cloudevent.HeaderVersion, cloudevent.HeaderDataSchema, cloudevent.HeaderContentType,
	cloudevent.HeaderTraceParent, cloudevent.HeaderTraceState,
	cloudevent.HeaderCorrelationID, cloudevent.HeaderCausationID,
}

// Causes are those of them that an event has among its extensions.
var Causes = Attributes[len(Attributes)-4:]

// Each calls write for every header of the message, always in the same order.
func Each(msg *message.Message, write func(name, value string)) {
	if msg.UUID != "" {
		write(cloudevent.HeaderID, msg.UUID)
		write(cloudevent.HeaderWatermillID, msg.UUID)
	}
	left := len(msg.Metadata)
	for _, name := range Attributes {
		if value, ok := msg.Metadata[name]; ok {
			write(name, value)
			left--
		}
	}
	for _, name := range notHeaders {
		if _, ok := msg.Metadata[name]; ok {
			left--
		}
	}
	if left == 0 {
		return
	}
	others := make([]string, 0, left)
	for name := range msg.Metadata {
		if IsExtra(name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range others {
		write(name, msg.Metadata[name])
	}
}

// notHeaders are metadata that are not written: the key, and what a message's UUID stands for.
var notHeaders = []string{cloudevent.KeyMetadata, cloudevent.HeaderID, cloudevent.HeaderWatermillID}

// IsExtra reports whether a header is neither one of these nor one of the attributes.
func IsExtra(name string) bool {
	return !slices.Contains(notHeaders, name) && !slices.Contains(Attributes, name)
}
