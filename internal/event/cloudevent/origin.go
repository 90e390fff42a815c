package cloudevent

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

	// Unreadable is why the records from Offset to LastOffset could not be read: their batch is damaged on the log. Their
	// one message is empty. It is nil for every message that was read.
	Unreadable error
	LastOffset int64
	// Damaged is then the beginning of their batches, at most 1 MiB, and DamagedSize the size of these on the log.
	Damaged     []byte
	DamagedSize int
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

type logEndKey struct{}

// WithLogEnd returns a context with the end of a partition's log when a subscriber began to read it.
func WithLogEnd(ctx context.Context, end int64) context.Context {
	return context.WithValue(ctx, logEndKey{}, end)
}

// LogEndFrom returns the offset of [WithLogEnd], or 0. No earlier reader of the partition has seen a message with this
// or a later offset.
func LogEndFrom(ctx context.Context) int64 {
	end, _ := ctx.Value(logEndKey{}).(int64)
	return end
}
