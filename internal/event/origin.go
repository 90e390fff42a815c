package event

import (
	"context"
	"time"
)

// Origin is the place of a message's record, with the record byte for byte. A dead letter keeps it.
type Origin struct {
	Group     string
	Topic     string
	Partition int32
	Offset    int64
	Time      time.Time // the record's own timestamp
	Key       []byte
	Headers   []Header // in their order, duplicates included
	// From is the position of the topic-partition's owner at this record: the offset behind the record before it, or the
	// offset at which the owner began to read. Nil: the subscriber does not know it.
	From *int64
}

// Point is how far a database has the outcomes of a topic-partition's records.
type Point struct {
	Next int64 // the offset behind the last of them
	Time int64 // when the broker appended the record below Next, in milliseconds since 1970; 0: not known
}

// Header is one record header, byte for byte. A record may have a name twice, and a name need not be text. A nil value
// is null, not empty.
type Header struct {
	Name  string
	Value []byte
}

type originKey struct{}

// WithOrigin returns a context with the origin of its message. A subscriber calls it.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginFrom returns the context's [Origin]. ok is false for a message that no broker delivered.
func OriginFrom(ctx context.Context) (o Origin, ok bool) {
	o, ok = ctx.Value(originKey{}).(Origin)
	return o, ok
}
