package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
)

// recordType is the type of a row that stands for another system's record.
const recordType = "record"

// AddRecord adds a record that is no event of this service, such as the copy of a dead letter: it is published with
// this key, these headers and this value, byte for byte, and nothing is added or checked but its topic and its size.
// Order and parking are as for events; records without a key are in order among those of the same value. It is not
// republished along with events; see [Selection].
//
// Errors: [*EventError] before anything is sent, else the database's.
func (o *Outbox) AddRecord(ctx context.Context, tx pgx.Tx, topic string, wire cloudevent.Wire, value []byte) error {
	encoded, err := wire.Encode()
	if err != nil {
		return refuse(CodeInvalidText, "the headers cannot be encoded")
	}
	e := cloudevent.Event{
		Source: "/", Type: recordType, Topic: topic, Key: string(wire.Key), Data: value,
		Extensions: map[string]string{cloudevent.RecordMetadata: encoded},
	}
	if e.Key == "" || len(e.Key) > maxKeyBytes || !validText(e.Key) { // what the table orders by is text
		ordered := wire.Key
		if len(ordered) == 0 {
			ordered = value
		}
		sum := sha256.Sum256(ordered)
		e.Key = hex.EncodeToString(sum[:])
	}
	if e.Data == nil {
		e.Data = []byte{}
	}
	size := headerBytes + len(value) + len(wire.Key)
	for _, h := range wire.Headers {
		size += len(h.Name) + len(h.Value) + 10
	}
	switch {
	case topic == "":
		return refuse(CodeMissingTopic, "no topic")
	case !validTopic(topic):
		return refuse(CodeInvalidTopic, "not a topic name")
	case size > o.cfg.MaxEventBytes:
		return refuse(CodeTooLarge, "the record is larger than an event may be")
	}
	e = complete(e, "", o.cfg.Now(), cloudevent.Cause{})
	b, err := newBatch([]cloudevent.Event{e}, []int{0}, nil, make([]Added, 1))
	if err != nil {
		return err
	}
	_, err = o.insert(ctx, tx, b)
	return err
}
