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
