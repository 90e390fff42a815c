package outbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"example.com/twinbox/engine/cloudevent"
)

// batch is what a call adds: its events, checked, and the numbers that they want.
type batch struct {
	events        []cloudevent.Event
	index         []int      // of each event in the call
	behind        []int64    // how many events of the same key follow each
	keys          []keyCount // sorted
	unconditional bool       // no event names its version
	given         []given    // ids that come first: their events may turn out to be there already
	added         []Added    // the call's answer; an event that is not inserted is a repeated one
}

// keyCount is one key of a call: how many events it gets, and after which version (anyVersion: the newest).
type keyCount struct {
	topic, key   string
	events, base int64
}

const anyVersion = -1

// batch checks the events and fills in what the caller has left out.
func (o *Outbox) batch(events []cloudevent.Event, cause cloudevent.Cause) (*batch, error) {
	if o.cfg.Refuse != nil {
		if err := o.cfg.Refuse(); err != nil {
			return nil, fmt.Errorf("add events: %w", err)
		}
	}
	now := o.cfg.Now()
	added := make([]Added, len(events))
	kept, index := make([]cloudevent.Event, 0, len(events)), make([]int, 0, len(events))
	ids := givenIDs{outbox: o}
	for i, e := range events {
		own := e.ID == ""
		e = complete(e, o.cfg.Source, now, cause)
		if err := o.check(e); err != nil {
			err.Index = i
			return nil, err
		}
		added[i] = Added{ID: e.ID, Repeated: true}
		if !own {
			repeated, err := ids.add(i, e)
			if err != nil {
				return nil, err
			}
			if repeated {
				continue
			}
		}
		o.cfg.Spans.Create(&e) // part: observability
		kept, index = append(kept, e), append(index, i)
	}
	return newBatch(kept, index, ids.list, added)
}

// newBatch counts the keys.
func newBatch(events []cloudevent.Event, index []int, ids []given, added []Added) (*batch, error) {
	b := &batch{
		events: events, index: index, behind: make([]int64, len(events)), unconditional: true, given: ids, added: added,
	}
	places := make(map[[2]string]int, len(events)) // in keys
	for i, e := range events {
		name := [2]string{e.Topic, e.Key}
		place, known := places[name]
		if !known {
			place = len(b.keys)
			places[name] = place
			b.keys = append(b.keys, keyCount{topic: e.Topic, key: e.Key, base: anyVersion})
		}
		if err := b.keys[place].count(e.Version); err != nil {
			return nil, fmt.Errorf("add event %d: %w", index[i], err)
		}
		b.unconditional = b.unconditional && e.Version == 0
		b.behind[i] = b.keys[place].events
	}
	for i, e := range events {
		b.behind[i] = b.keys[places[[2]string{e.Topic, e.Key}]].events - b.behind[i]
	}
	slices.SortFunc(b.keys, func(x, y keyCount) int {
		return cmp.Or(cmp.Compare(x.topic, y.topic), cmp.Compare(x.key, y.key))
	})
	return b, nil
}

// count counts an event. The nth event of the key wants version base+n; all events of the key must mean the same base.
func (k *keyCount) count(version int64) error {
	k.events++
	if version == 0 {
		return nil
	}
	base := version - k.events
	if base < 0 || k.base != anyVersion && k.base != base {
		return ErrVersionConflict
	}
	k.base = base
	return nil
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
	return newBatch(events, index, nil, b.added)
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

func (b *batch) single() bool { return len(b.events) == 1 }

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
	var ids, types, sources, eventTopics, eventKeys, schemas, headers []string
	var times []time.Time
	var data [][]byte
	for _, e := range b.events {
		ids, types, sources = append(ids, e.ID), append(types, e.Type), append(sources, e.Source)
		eventTopics, eventKeys = append(eventTopics, e.Topic), append(eventKeys, e.Key)
		schemas, headers = append(schemas, e.DataSchema), append(headers, headersOf(e))
		times, data = append(times, e.Time), append(data, e.Data)
	}
	return []any{
		topics, keys, events, bases, b.unconditional,
		ids, types, sources, eventTopics, eventKeys, b.behind, schemas, times, headers, data,
	}
}

// columns are those of a batch of one.
func (b *batch) columns() []any {
	e := &b.events[0]
	return []any{e.Topic, e.Key, e.ID, e.Type, e.Source, e.DataSchema, e.Time, headersOf(*e), e.Data}
}

// givenArgs are the parameters of insertGivenSQL.
func (b *batch) givenArgs() []any { return append(b.columns(), b.keys[0].base, b.given[0].content) }

func headersOf(e cloudevent.Event) string {
	if len(e.Extensions) == 0 {
		return ""
	}
	headers, _ := json.Marshal(e.Extensions) // strings always can be
	return string(headers)
}
