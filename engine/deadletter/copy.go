package deadletter

import (
	"strconv"
	"time"
	"unicode/utf8"

	"example.com/twinbox/engine/cloudevent"
)

// The headers that KIP-1191 gives a dead letter, and what it has no name for.
const (
	headerTopic         = "__dlq.errors.topic"
	headerPartition     = "__dlq.errors.partition"
	headerOffset        = "__dlq.errors.offset"
	headerGroup         = "__dlq.errors.group"
	headerDeliveries    = "__dlq.errors.delivery.count"
	headerMessage       = "__dlq.errors.message"
	headerClass         = "dlq_error_class"
	headerCode          = "dlq_error_code"
	headerAttempts      = "dlq_attempts"
	headerFirstFailedAt = "dlq_first_failed_at"
	headerReplays       = "dlq_replay_count"
	headerHandler       = "dlq_handler"
)

// CopyPrefix begins the names of the topics for copies.
const CopyPrefix = "dlq."

// CopyTopic is where the copies of a group's dead letters of a topic go.
func CopyTopic(group, topic string) string { return CopyPrefix + group + "." + topic }

// Copy is the dead letter as a record for other tools: the key and the headers that came, in their order, and behind
// them why it is here. The value is the payload that came. A copy is not replayed: the row is.
func (l Letter) Copy() cloudevent.Wire {
	wire := cloudevent.Wire{
		Key: l.Key, Headers: make([]cloudevent.Header, len(l.Headers), len(l.Headers)+12), NullValue: l.Payload == nil,
	}
	for i, h := range l.Headers {
		wire.Headers[i] = cloudevent.Header(h)
	}
	for _, h := range [][2]string{
		{headerTopic, l.Topic},
		{headerPartition, strconv.Itoa(int(l.Partition))},
		{headerOffset, strconv.FormatInt(l.Offset, 10)},
		{headerGroup, l.Group},
		{headerDeliveries, strconv.Itoa(l.Attempts)},
		{headerMessage, shortened(Text(l.Error))},
		{headerClass, l.Class},
		{headerCode, l.Code},
		{headerAttempts, strconv.Itoa(l.Attempts)},
		{headerFirstFailedAt, l.FirstFailedAt.UTC().Format(time.RFC3339Nano)},
		{headerReplays, strconv.Itoa(l.Replays)},
		{headerHandler, l.Consumer},
	} {
		wire.Headers = append(wire.Headers, cloudevent.Header{Name: h[0], Value: []byte(h[1])})
	}
	return wire
}

const maxMessage = 1000 // bytes of the error in the copy; the row has up to failure.MaxText

func shortened(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	end := maxMessage
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
