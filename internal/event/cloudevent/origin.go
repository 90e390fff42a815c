package cloudevent

import (
	"context"
	"time"
)

// Origin is where a message was read from, and the record exactly as it lay there, so that a dead letter can keep
// what no decoder understood.
type Origin struct {
	Group     string
	Topic     string
	Partition int32
	Offset    int64
	Time      time.Time // the record's own timestamp
	Key       []byte
	Headers   []Header // in their order, duplicates included

	// Unreadable says why the records from Offset to LastOffset could not be read: their batch is damaged on the log.
	// The message stands for all of them and is empty. It is nil for every message that was read.
	Unreadable error
	LastOffset int64
	// Damaged is then what there is of the records: the beginning of their batches as they lie on the log, at most 1 MiB,
	// and DamagedSize how many bytes they have there.
	Damaged     []byte
	DamagedSize int
}

// Header is one record header, byte for byte. Its name may stand twice and need not be text. A nil value is null, which
// is not empty.
type Header struct {
	Name  string
	Value []byte
}

type originKey struct{}

// WithOrigin returns a context that carries where its message came from. A subscriber calls it.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return &OriginContext{Context: ctx, Origin: o}
}

// OriginFrom returns what [WithOrigin] put there; ok is false for a message that no broker delivered.
func OriginFrom(ctx context.Context) (o Origin, ok bool) {
	found, ok := ctx.Value(originKey{}).(*Origin)
	if !ok {
		return Origin{}, false
	}
	return *found, true
}

// OriginContext is what [WithOrigin] returns. A subscriber that hands out batches keeps a slice of them, which costs no
// allocation per message.
type OriginContext struct {
	context.Context
	Origin Origin
}

// Value implements [context.Context].
func (c *OriginContext) Value(key any) any {
	if key == (originKey{}) {
		return &c.Origin
	}
	return c.Context.Value(key)
}

type logEndKey struct{}

// WithLogEnd returns a context that carries where the log of a partition ended when a subscriber began to read it.
func WithLogEnd(ctx context.Context, end int64) context.Context {
	return context.WithValue(ctx, logEndKey{}, end)
}

// LogEndFrom returns what [WithLogEnd] put there: a message with this offset or a later one was written after its
// subscriber began to read, so no reader of the partition before that one has seen it. It is 0 when it is not known.
func LogEndFrom(ctx context.Context) int64 {
	end, _ := ctx.Value(logEndKey{}).(int64)
	return end
}
