package operate

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

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/outbox/window"
)

// Selection says what to publish again. What is set must all hold; at least one thing must be set. Copies of dead letters
// are published again only if their topic or their ids are asked for.
type Selection struct {
	From, To     int64     // positions, both included; 0: no bound
	Since, Until time.Time // business time, Until excluded; zero: no bound. Reads all rows that are kept
	IDs          []string  // event ids. Reads all rows that are kept
	Topic, Key   string
}

var (
	// ErrEmptySelection is for a [Selection] without a bound: it would publish everything.
	ErrEmptySelection = errors.New("outbox: nothing selected")
	// ErrRestoring means that the outbox was restored and the relay has not yet published what the restore left.
	ErrRestoring = errors.New("outbox: a restore is still being published")
)

// republishSQL takes only rows that were published: of others it would send a later one before an earlier one.
const republishSQL = `
select ` + window.Columns + `
from public.outbox o
cross join public.outbox_cursor c
where c.name = $1 and o.position > $2 and o.position <= $3
    and ` + window.IsPublished + `
    and o.occurred_at >= $4 and o.occurred_at < $5
    and ($6::text[] is null or o.event_id = any($6::text[]::uuid[]))
    and ($7 = '' or o.topic = $7) and ($8 = '' or o.key = $8)
    and ($7 <> '' or $6::text[] is not null or o.topic not like '` + cloudevent.CopyPrefix + `%')
    and not exists (select from public.outbox_held h where h.position = o.position)
    and not exists (select from public.outbox_discarded d where d.position = o.position)
order by o.position
limit $9`

const republishPage = 500

// Publisher is where republished events go. Its nil means that all are taken.
type Publisher interface {
	PublishContext(ctx context.Context, topic string, messages ...*message.Message) error
}

// Republish sends events again that were published before and are still kept: same ids, same versions, in the order of
// their positions, so that consumers skip what they have. It returns how many were sent, also beside an error. It needs
// no relay and disturbs none: every row it sends is a duplicate.
func Republish(ctx context.Context, db window.DB, publisher Publisher, s Selection) (int, error) {
	if s.From == 0 && s.To == 0 && s.Since.IsZero() && s.Until.IsZero() && s.IDs == nil && s.Topic == "" && s.Key == "" {
		return 0, ErrEmptySelection
	}
	switch status, err := readStatus(ctx, db, 1); {
	case err != nil:
		return 0, err
	case status.Restoring:
		return 0, ErrRestoring
	}
	pages := window.NewPager(republishPage, 8<<20)
	sent, above := 0, max(s.From, 1)-1
	for {
		p, err := pages.Read(ctx, db, republishSQL, window.CursorName, above, cmp.Or(s.To, math.MaxInt64),
			s.Since, cmp.Or(s.Until, cloudevent.Latest), s.IDs, s.Topic, s.Key)
		if err != nil {
			return sent, fmt.Errorf("read published rows: %w", err)
		}
		if len(p.Records) == 0 {
			return sent, nil
		}
		messages := map[string][]*message.Message{}
		for _, r := range p.Records {
			messages[r.Event.Topic] = append(messages[r.Event.Topic], r.Event.Message())
		}
		for _, topic := range slices.Sorted(maps.Keys(messages)) {
			if err := publisher.PublishContext(ctx, topic, messages[topic]...); err != nil {
				return sent, fmt.Errorf("republish to %s: %w", topic, err)
			}
			sent += len(messages[topic])
		}
		above = p.Last()
	}
}
