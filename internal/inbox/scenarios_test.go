package inbox_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

func v(key string, version int64) event.Event {
	e := newEvent()
	e.Key, e.Version = key, version
	return e
}

func versions(key string, numbers ...int64) func() []event.Event {
	return func() []event.Event {
		events := make([]event.Event, len(numbers))
		for i, n := range numbers {
			events[i] = v(key, n)
		}
		return events
	}
}

func payload(e event.Event, data string) event.Event {
	e.Data = []byte(data)
	return e
}

func ordered(order inbox.Order) func(*inbox.Config) {
	return func(c *inbox.Config) { c.Order = order }
}

func failing(fail func(ctx context.Context, tx pgx.Tx) error) handlerFunc {
	return func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
		if data.Value == "bad" {
			return fail(ctx, tx)
		}
		return effect(ctx, tx, e, data)
	}
}

func threeWithBadMiddle() []event.Event {
	return []event.Event{v("a", 1), payload(v("b", 1), `{"value":"bad"}`), v("c", 1), v("a", 2)}
}

var middleIsDead = []inbox.Outcome{inbox.Applied, inbox.Dead, inbox.Applied, inbox.Applied}

var scenarios = map[string]scenario{
	"new ones": {
		events:   versions("key-1", 1, 2, 3, 4),
		outcomes: []inbox.Outcome{inbox.Applied, inbox.Applied, inbox.Applied, inbox.Applied},
		effects:  []int{0, 1, 2, 3},
	},
	"an id twice": {
		events: func() []event.Event {
			a, b := newEvent(), newEvent()
			return []event.Event{a, b, a, a}
		},
		outcomes: []inbox.Outcome{inbox.Applied, inbox.Applied, inbox.Duplicate, inbox.Duplicate},
		effects:  []int{0, 1},
	},
	"an id twice with another payload": {
		events: func() []event.Event {
			a, b := newEvent(), newEvent()
			return []event.Event{a, payload(a, `{"value":"b"}`), b, payload(a, `{"value":"c"}`), a}
		},
		outcomes: []inbox.Outcome{inbox.Applied, inbox.Conflict, inbox.Applied, inbox.Conflict, inbox.Duplicate},
		effects:  []int{0, 2},
		letters:  []string{"id_conflict", "id_conflict"},
	},
	"another payload, only warned of": {
		configure: func(c *inbox.Config) { c.OnConflict = inbox.ConflictWarn },
		events: func() []event.Event {
			a := newEvent()
			return []event.Event{a, payload(a, `{"value":"b"}`)}
		},
		outcomes: []inbox.Outcome{inbox.Applied, inbox.Conflict},
		effects:  []int{0},
	},
	"a run of redeliveries, and in it another payload and something new": {
		events: func() []event.Event {
			a, b, c, d := newEvent(), newEvent(), newEvent(), newEvent()
			return []event.Event{
				a, b, c, a, b, c, a, b, c, a, b, c, a, b, c, payload(a, `{"value":"b"}`), a, b, c, a, b, c, a, b, c, d, a, d,
			}
		},
		outcomes: slices.Concat(slices.Repeat([]inbox.Outcome{inbox.Applied}, 3),
			slices.Repeat([]inbox.Outcome{inbox.Duplicate}, 12), []inbox.Outcome{inbox.Conflict},
			slices.Repeat([]inbox.Outcome{inbox.Duplicate}, 9),
			[]inbox.Outcome{inbox.Applied, inbox.Duplicate, inbox.Duplicate}),
		effects: []int{0, 1, 2, 25},
		letters: []string{"id_conflict"},
	},
	"a foreign id with another time is the same id": {
		events: func() []event.Event {
			a, b := named("order-1", "key-1"), named("order-1", "key-1")
			b.Time = b.Time.AddDate(0, 0, 3)
			return []event.Event{a, b}
		},
		outcomes: []inbox.Outcome{inbox.Applied, inbox.Duplicate},
		effects:  []int{0},
	},
	"stale": {
		configure: ordered(inbox.Latest),
		events:    versions("key-1", 1, 2, 2, 1, 3),
		outcomes:  []inbox.Outcome{inbox.Applied, inbox.Applied, inbox.Stale, inbox.Stale, inbox.Applied},
		effects:   []int{0, 1, 4},
		watermark: 3,
	},
	"a stale one twice": {
		configure: ordered(inbox.Latest),
		events: func() []event.Event {
			old := v("key-1", 1)
			return []event.Event{v("key-1", 2), old, old}
		},
		outcomes:  []inbox.Outcome{inbox.Applied, inbox.Stale, inbox.Stale},
		effects:   []int{0},
		watermark: 2,
	},
	"gap allowed": {
		configure: ordered(inbox.Latest),
		events:    versions("key-1", 1, 5, 3, 6),
		outcomes:  []inbox.Outcome{inbox.Applied, inbox.Applied, inbox.Stale, inbox.Applied},
		effects:   []int{0, 1, 3},
		watermark: 6,
	},
	"gap parked, and what comes behind it": {
		configure: ordered(inbox.Strict),
		events: func() []event.Event {
			return []event.Event{v("key-1", 1), v("key-1", 3), v("other", 1), v("key-1", 4), v("key-1", 2), v("other", 2)}
		},
		outcomes: []inbox.Outcome{
			inbox.Applied, inbox.Gap, inbox.Applied, inbox.Parked, inbox.Applied, inbox.Applied,
		},
		effects:   []int{0, 2, 4, 5},
		parked:    []string{"version_gap", "parked_behind"},
		watermark: 2,
	},
	"a key without versions parks wholly": {
		configure: ordered(inbox.Strict),
		before: `insert into dead_letter (consumer, event_id, event_type, key, headers, payload, topic, partition,
			record_offset, holds, class, code, error, attempts, first_failed_at) values
			('test', 'e0', 't', 'key-1', '[]', '', 't', 0, 0, true, 'parked', 'test', 'x', 1, now());
			insert into inbox_key values ('test', 'key-1', 0, 0)`,
		events: func() []event.Event {
			return []event.Event{v("key-1", 0), v("other", 0), v("key-1", 0), v("key-1", 7)}
		},
		outcomes: []inbox.Outcome{inbox.Parked, inbox.Applied, inbox.Parked, inbox.Parked},
		effects:  []int{1},
		parked:   []string{"test", "parked_behind", "parked_behind", "parked_behind"},
	},
	"older than the inbox remembers": {
		before: `update inbox_horizon set remembers_from = '2026-01-03'`,
		events: func() []event.Event {
			old := at(time.Date(2026, 1, 2, 23, 59, 59, 0, time.UTC))
			return []event.Event{v("a", 1), old, named("order-1", "b"), v("a", 2), old}
		},
		outcomes: []inbox.Outcome{inbox.Applied, inbox.Expired, inbox.Expired, inbox.Applied, inbox.Expired},
		effects:  []int{0, 3},
		letters:  []string{"too_old", "too_old"},
	},
	"older than the inbox remembers, published again": {
		configure: func(c *inbox.Config) { c.Order = inbox.Strict },
		before: `update inbox_horizon set remembers_from = '2026-01-03';
			insert into inbox_key values ('test', 'a', 2)`,
		events: func() (events []event.Event) {
			for version := range int64(3) {
				e := at(time.Date(2026, 1, 2, 23, 59, 59, 0, time.UTC))
				e.Key, e.Version = "a", version+1
				events = append(events, e)
			}
			return events
		},
		outcomes: []inbox.Outcome{inbox.Duplicate, inbox.Duplicate, inbox.Expired},
		letters:  []string{"too_old"},
	},
	"from the past and from the future": {
		events: func() []event.Event {
			far := at(time.Date(8000, 1, 1, 0, 0, 0, 0, time.UTC))
			near := at(time.Now().AddDate(0, 0, 30))
			return []event.Event{far, near, at(firstMoment), at(time.Unix(1, 0)), far, near}
		},
		outcomes: []inbox.Outcome{
			inbox.Applied, inbox.Applied, inbox.Applied, inbox.Applied, inbox.Duplicate, inbox.Duplicate,
		},
		effects: []int{0, 1, 2, 3},
	},
	"not an event": {
		events: threeWithBadMiddle,
		spoil: func(i int, m *message.Message) {
			if i == 1 {
				m.Payload = nil
			}
		},
		outcomes: middleIsDead, effects: []int{0, 2, 3}, letters: []string{"empty_value"},
	},
	"no event, and then its event": {
		events: func() []event.Event {
			a := newEvent()
			return []event.Event{a, a, a}
		},
		spoil: func(i int, m *message.Message) {
			if i == 0 {
				m.Payload = nil
			}
		},
		outcomes: []inbox.Outcome{inbox.Dead, inbox.Applied, inbox.Duplicate}, effects: []int{1},
		letters: []string{"empty_value"},
	},
	"no version behind a version": {
		configure: ordered(inbox.Latest),
		events:    versions("key-1", 0, 1, 0, 2),
		outcomes:  []inbox.Outcome{inbox.Applied, inbox.Applied, inbox.Dead, inbox.Applied},
		effects:   []int{0, 1, 3}, letters: []string{"missing_version"}, watermark: 2,
	},
	"a jump of versions": {
		configure: ordered(inbox.Latest),
		events:    versions("key-1", 5000, 6000, 7001, 6001),
		outcomes:  []inbox.Outcome{inbox.Applied, inbox.Applied, inbox.Dead, inbox.Applied},
		effects:   []int{0, 1, 3}, letters: []string{"version_jump"}, watermark: 6001,
	},
	"a dead letter holds its key": {
		configure: ordered(inbox.Strict),
		events: func() []event.Event {
			bad := payload(v("key-1", 2), `{"value":[]}`)
			return []event.Event{v("key-1", 1), bad, v("key-1", 3), v("other", 1), v("key-1", 0)}
		},
		outcomes: []inbox.Outcome{
			inbox.Applied, inbox.Dead, inbox.Parked, inbox.Applied, inbox.Parked,
		},
		effects: []int{0, 3}, letters: []string{"payload_mismatch"}, parked: []string{"parked_behind", "parked_behind"},
		watermark: 1,
	},
	"broken ones behind a broken one": {
		configure: func(c *inbox.Config) {
			c.Order = inbox.Strict
			c.Validate = func(e event.Event) error {
				if string(e.Data) == `{"value":"broken"}` {
					return inbox.PermanentAs("breach", errors.New("value is missing"))
				}
				return nil
			}
		},
		events: func() []event.Event {
			events := versions("key-1", 1, 2, 4, 3, 5)()
			for i, e := range events[:3] {
				events[i] = payload(e, `{"value":"broken"}`)
			}
			return events
		},
		outcomes: []inbox.Outcome{inbox.Dead, inbox.Dead, inbox.Dead, inbox.Parked, inbox.Parked},
		letters:  []string{"breach", "breach", "breach"}, parked: []string{"parked_behind", "parked_behind"},
	},
	"not for this consumer": {
		configure: func(c *inbox.Config) {
			c.Accepts = acceptsTestType
			c.Validate = func(e event.Event) error {
				if !acceptsTestType(e.Type) {
					return errors.New("asked about another consumer's event")
				}
				return nil
			}
		},
		events: threeWithBadMiddle,
		spoil: func(i int, m *message.Message) {
			if i == 1 || i == 3 {
				m.Metadata["ce_type"] = "other"
			}
		},
		outcomes: []inbox.Outcome{inbox.Applied, inbox.Ignored, inbox.Applied, inbox.Ignored}, effects: []int{0, 2},
	},
	"of a type that the consumer accepts by mistake": {
		events: threeWithBadMiddle,
		spoil: func(i int, m *message.Message) {
			if i == 1 {
				m.Metadata["ce_type"] = "other"
			}
		},
		outcomes: middleIsDead, effects: []int{0, 2, 3}, letters: []string{"handler_failed"},
	},
	"refused by its handler": {
		events:   threeWithBadMiddle,
		handler:  failing(func(context.Context, pgx.Tx) error { return inbox.Permanent(errors.New("never")) }),
		outcomes: middleIsDead, effects: []int{0, 2, 3}, letters: []string{"handler_failed"},
	},
	"failing for an unknown reason": {
		events:   threeWithBadMiddle,
		handler:  failing(func(context.Context, pgx.Tx) error { return errors.New("no idea") }),
		outcomes: middleIsDead, effects: []int{0, 2, 3}, letters: []string{"handler_failed"},
	},
	"panicking": {
		events:   threeWithBadMiddle,
		handler:  failing(func(context.Context, pgx.Tx) error { panic("no idea") }),
		outcomes: middleIsDead, effects: []int{0, 2, 3}, letters: []string{"handler_panic"},
	},
	"an SQL error that its handler hides": {
		events: threeWithBadMiddle,
		handler: failing(func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, `select 1/0`)
			return nil
		}),
		outcomes: middleIsDead, effects: []int{0, 2, 3}, letters: []string{"handler_failed"},
	},
	"ending the transaction": {
		events:   threeWithBadMiddle,
		handler:  failing(func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }),
		outcomes: middleIsDead, effects: []int{0, 2, 3}, letters: []string{"handler_failed"},
	},
	"a queued write that fails": {
		events: threeWithBadMiddle,
		handler: queueing(func(ctx context.Context, tx pgx.Tx) error {
			return inbox.Queue(ctx, tx, `insert into ledger (n) values (1)`)
		}),
		outcomes: middleIsDead, effects: []int{0, 2, 3}, letters: []string{"handler_failed"},
	},
	"a queued return to a savepoint": {
		events: threeWithBadMiddle,
		handler: queueing(func(ctx context.Context, tx pgx.Tx) error {
			return errors.Join(
				inbox.Queue(ctx, tx, `savepoint before`),
				inbox.Queue(ctx, tx, `insert into ledger (event_id) values ('gone')`),
				inbox.Queue(ctx, tx, `rollback to savepoint before`))
		}),
		outcomes: []inbox.Outcome{inbox.Applied, inbox.Applied, inbox.Applied, inbox.Applied}, effects: []int{0, 2, 3},
	},
	"a queued write that hits nothing": {
		events: threeWithBadMiddle,
		handler: queueing(func(ctx context.Context, tx pgx.Tx) error {
			return inbox.QueueRows(ctx, tx, inbox.Permanent(errors.New("no rows")),
				`update ledger set event_id = '' where event_id = 'none'`)
		}),
		outcomes: middleIsDead, effects: []int{0, 2, 3}, letters: []string{"handler_failed"},
	},
}

var firstMoment = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func queueing(fail func(context.Context, pgx.Tx) error) handlerFunc {
	return func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
		if data.Value == "bad" {
			return fail(ctx, tx)
		}
		return inbox.Queue(ctx, tx, `insert into ledger (event_id) values ($1)`, e.ID)
	}
}
