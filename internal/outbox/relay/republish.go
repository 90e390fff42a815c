package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
)

// Selection selects events to publish again. All set fields must match; at least one must be set. Copies of dead
// letters need their topic or their ids.
type Selection struct {
	From, To     int64     // positions, both included; 0: no bound
	Since, Until time.Time // business time, Until excluded; zero: no bound. Reads all rows
	IDs          []string  // reads all rows
	Topic, Key   string
}

// ErrEmptySelection is for a [Selection] without a bound.
var ErrEmptySelection = errors.New("outbox: nothing selected")

// IsEmpty reports that no field is set.
func (s Selection) IsEmpty() bool {
	return s.From == 0 && s.To == 0 && s.Since.IsZero() && s.Until.IsZero() && s.IDs == nil && s.Topic == "" && s.Key == ""
}

// republishSQL takes only published rows: of others it would send a later one before an earlier one.
const republishSQL = `
select ` + columns + `
from public.outbox o
cross join public.outbox_cursor c
where o.position > $1 and o.position <= $2
    and ` + IsPublished + `
    and o.occurred_at >= $3 and o.occurred_at < $4
    and ($5::text[] is null or o.event_id = any($5::text[]::uuid[]))
    and ($6 = '' or o.topic = $6) and ($7 = '' or o.key = $7)
    and ($6 <> '' or $5::text[] is not null or o.topic not like '` + event.CopyPrefix + `%')
    and not exists (select from public.outbox_held h where h.position = o.position)
    and not exists (select from public.outbox_discarded d where d.position = o.position)
order by o.position
limit $8`

const republishPage = 500

// ContextPublisher is a publisher whose call ends with its context.
type ContextPublisher interface {
	PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error
}

// Republish sends published events that are still kept again: same ids, same versions, in the order of their positions.
// It returns how many were sent, also with an error; of a topic's call that failed in part, none are counted.
//
// It needs no relay. A leader looks at the log when it meets these records, and sends its page again. So Republish
// rests for nine tenths of the time.
func Republish(ctx context.Context, db DB, publisher ContextPublisher, s Selection) (sent int, err error) {
	if s.IsEmpty() {
		return 0, ErrEmptySelection
	}
	above := max(s.From, 1) - 1
	for {
		began := time.Now()
		page, _, err := readRecords(ctx, db, republishSQL, above, cmp.Or(s.To, math.MaxInt64), s.Since,
			cmp.Or(s.Until, event.Latest), s.IDs, s.Topic, s.Key, republishPage)
		if err != nil {
			return sent, fmt.Errorf("read published rows: %w", err)
		}
		if len(page) == 0 {
			return sent, nil
		}
		indexes := groupByTopic(page)
		for _, topic := range slices.Sorted(maps.Keys(indexes)) {
			var messages []*message.Message
			for _, i := range indexes[topic] {
				messages = append(messages, page[i].message())
			}
			if err := publisher.PublishContext(ctx, topic, messages...); err != nil {
				return sent, fmt.Errorf("republish to %s: %w", topic, err)
			}
			sent += len(messages)
		}
		above = page[len(page)-1].Position
		if err := failure.Sleep(ctx, 9*time.Since(began)); err != nil {
			return sent, fmt.Errorf("republish: %w", err)
		}
	}
}
