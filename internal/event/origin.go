package event

import (
	"context"
	"time"
)

// Origin is a message's record, byte for byte, and its place.
type Origin struct {
	Group     string
	Topic     string
	Partition int32
	Offset    int64
	Time      time.Time // the record's own timestamp
	Key       []byte
	Headers   []Header
	// From is the offset behind the owner's record before, or at which the owner began to read. Nil is unknown.
	From *int64
}

// Point is how far a database has the outcomes of a topic-partition.
type Point struct {
	Next int64 // offset behind the last record
	Time int64 // append time of the record below Next, in ms since 1970; 0: unknown; or ReadAgain
}

// ReadAgain is the time of a point that was put back to the start of a log whose records were lost.
const ReadAgain = -1

// Header is one record header. Names may repeat and need not be text. A nil value is null, not empty.
type Header struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

type originKey struct{}

// WithOrigin returns a context with the message's origin.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginFrom returns the context's [Origin]; ok is false if no broker delivered the message.
func OriginFrom(ctx context.Context) (o Origin, ok bool) {
	o, ok = ctx.Value(originKey{}).(Origin)
	return o, ok
}
