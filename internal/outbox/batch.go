package outbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"example.com/twinbox/internal/cloudevent"
)

// batch is the arguments of an insert (insert.go), column by column.
type batch struct {
	keys          []keyCount // sorted
	unconditional bool       // no event names its version

	ids, types, sources, topics, names, schemas, headers []string
	behind                                               []int64 // how many events of the key follow in the call
	times                                                []time.Time
	data                                                 [][]byte
	index                                                []int // of the row's event in the call

	given  []given            // to be claimed first
	events []cloudevent.Event // of the rows, if there are given ids: some may turn out to be there already
}

// keyCount is one key of a call: how many events it gets, and after which version (anyVersion: whatever it has).
type keyCount struct {
	topic, key   string
	events, base int64
}

const anyVersion = -1

func (o *Outbox) batch(events []cloudevent.Event, cause cloudevent.Cause) (*batch, error) {
	if o.cfg.Refuse != nil {
		if err := o.cfg.Refuse(); err != nil {
			return nil, fmt.Errorf("add events: %w", err)
		}
	}
	now := o.cfg.Now()
	kept, index := make([]cloudevent.Event, 0, len(events)), make([]int, 0, len(events))
	ids := givenIDs{outbox: o}
	for i, e := range events {
		own := e.ID == ""
		e, err := complete(e, o.cfg.Source, now, cause)
		if err != nil {
			return nil, err
		}
		if err := o.check(e); err != nil {
			err.Index = i
			return nil, err
		}
		if !own {
			repeated, err := ids.add(i, e)
			if err != nil {
				return nil, err
			}
			if repeated {
				continue
			}
		}
		kept, index = append(kept, e), append(index, i)
	}
	b, err := assemble(kept, index)
	if err == nil && len(ids.list) > 0 {
		b.given, b.events = ids.list, kept
	}
	return b, err
}

// assemble makes the columns and counts the keys.
func assemble(events []cloudevent.Event, index []int) (*batch, error) {
	b := &batch{unconditional: true, index: index}
	count := keyCounter{index: make(map[[2]string]int, len(events))}
	keyOf := make([]int, len(events))
	for i, e := range events {
		var err error
		if keyOf[i], err = count.add(e); err != nil {
			return nil, fmt.Errorf("add event %d: %w", index[i], err)
		}
		b.unconditional = b.unconditional && e.Version == 0
		if err := b.append(e, count.keys[keyOf[i]].events); err != nil {
			return nil, err
		}
	}
	for i, key := range keyOf {
		b.behind[i] = count.keys[key].events - b.behind[i]
	}
	b.keys = count.keys
	slices.SortFunc(b.keys, func(x, y keyCount) int {
		return cmp.Or(cmp.Compare(x.topic, y.topic), cmp.Compare(x.key, y.key))
	})
	return b, nil
}

// without is the batch without the events of some given ids.
func (b *batch) without(ids map[string]bool) (*batch, error) {
	if len(ids) == 0 {
		return b, nil
	}
	var events []cloudevent.Event
	var index []int
	for i, e := range b.events {
		if !ids[e.ID] {
			events, index = append(events, e), append(index, b.index[i])
		}
	}
	return assemble(events, index)
}

func (o *Outbox) check(e cloudevent.Event) *EventError {
	if err := checkEvent(e, o.cfg.MaxEventBytes); err != nil {
		return err
	}
	if o.cfg.Validate == nil {
		return nil
	}
	if err := o.cfg.Validate(e); err != nil {
		return &EventError{Code: CodeInvalidPayload, Detail: err.Error(), Err: err}
	}
	return nil
}

func (b *batch) append(e cloudevent.Event, nth int64) error {
	var headers []byte
	if len(e.Extensions) > 0 {
		var err error
		if headers, err = json.Marshal(e.Extensions); err != nil {
			return fmt.Errorf("encode headers: %w", err)
		}
	}
	b.ids, b.types, b.sources = append(b.ids, e.ID), append(b.types, e.Type), append(b.sources, e.Source)
	b.topics, b.names, b.behind = append(b.topics, e.Topic), append(b.names, e.Key), append(b.behind, nth)
	b.schemas, b.headers = append(b.schemas, e.DataSchema), append(b.headers, string(headers))
	b.times, b.data = append(b.times, e.Time), append(b.data, e.Data)
	return nil
}

func (b *batch) single() bool { return len(b.ids) == 1 }

// args are in the order of the parameters of the batch's statement.
func (b *batch) args() []any {
	if b.single() {
		args := b.columns()
		if base := b.keys[0].base; base > 0 {
			args = append(args, base) // lockNextSQL's
		}
		return args
	}
	topics, keys := make([]string, len(b.keys)), make([]string, len(b.keys))
	events, bases := make([]int64, len(b.keys)), make([]int64, len(b.keys))
	for i, k := range b.keys {
		topics[i], keys[i], events[i], bases[i] = k.topic, k.key, k.events, k.base
	}
	return []any{
		topics, keys, events, bases, b.unconditional,
		b.ids, b.types, b.sources, b.topics, b.names, b.behind, b.schemas, b.times, b.headers, b.data,
	}
}

// columns are those of a batch of one.
func (b *batch) columns() []any {
	return []any{
		b.topics[0], b.names[0], b.ids[0], b.types[0], b.sources[0], b.schemas[0], b.times[0], b.headers[0], b.data[0],
	}
}

// givenArgs are the parameters of insertGivenSQL.
func (b *batch) givenArgs() []any { return append(b.columns(), b.keys[0].base, b.given[0].content) }

// keyCounter numbers the events of each key within a call.
type keyCounter struct {
	keys  []keyCount
	index map[[2]string]int
}

// add returns the place of the event's key in keys.
func (c *keyCounter) add(e cloudevent.Event) (int, error) {
	name := [2]string{e.Topic, e.Key}
	i, known := c.index[name]
	if !known {
		i = len(c.keys)
		c.index[name] = i
		c.keys = append(c.keys, keyCount{topic: e.Topic, key: e.Key, base: anyVersion})
	}
	k := &c.keys[i]
	k.events++
	if e.Version == 0 {
		return i, nil
	}
	// The nth event of the key wants version base+n; all events of the key must mean the same base.
	base := e.Version - k.events
	if base < 0 || k.base != anyVersion && k.base != base {
		return i, ErrVersionConflict
	}
	k.base = base
	return i, nil
}
