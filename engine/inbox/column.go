package inbox

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// column is an array parameter that points into what there is. A slice would do, but pgx copies each of its elements to
// the heap to look at it: with the inbox's columns eight of the 28 allocations per event of BenchmarkInbox at batch
// 200. Pointers need none.
type column[V any] struct {
	length int
	at     func(i int) V // a pointer
}

func columnOf[V any](items []*item, of func(*item) V) column[V] {
	return column[V]{len(items), func(i int) V { return of(items[i]) }}
}

func textColumn(texts []string) column[*textValue] {
	return column[*textValue]{len(texts), func(i int) *textValue { return (*textValue)(&texts[i]) }}
}

// Dimensions implements [pgtype.ArrayGetter].
func (c column[V]) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(c.length), LowerBound: 1}}
}

// Index implements [pgtype.ArrayGetter].
func (c column[V]) Index(i int) any { return c.at(i) }

// IndexType implements [pgtype.ArrayGetter].
func (column[V]) IndexType() any {
	var v V
	return v
}

type (
	textValue  string
	timeValue  time.Time
	bytesValue []byte
)

// TextValue implements [pgtype.TextValuer].
func (t *textValue) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: string(*t), Valid: true}, nil
}

// TimestamptzValue implements [pgtype.TimestamptzValuer].
func (t *timeValue) TimestamptzValue() (pgtype.Timestamptz, error) {
	return pgtype.Timestamptz{Time: time.Time(*t), Valid: true}, nil
}

// BytesValue implements [pgtype.BytesValuer].
func (b *bytesValue) BytesValue() ([]byte, error) { return *b, nil }

func idOf(it *item) *textValue    { return (*textValue)(&it.entry.id) }
func typeOf(it *item) *textValue  { return (*textValue)(&it.entry.typ) }
func placeOf(it *item) *timeValue { return (*timeValue)(&it.entry.place) }
func timeOf(it *item) *timeValue  { return (*timeValue)(&it.entry.at) }
func hashOf(it *item) *bytesValue { return (*bytesValue)(&it.entry.hash) }
