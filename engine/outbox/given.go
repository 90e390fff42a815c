package outbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
)

// OnConflict says what happens to an event whose id, given by the caller, belongs to another event already.
type OnConflict string

// The values of [Config.OnConflict].
const (
	ConflictError OnConflict = "error" // it is refused with [CodeIDConflict]
	ConflictWarn  OnConflict = "warn"  // it is added and logged; consumers refuse one of the two, not all the same one
)

// given is an id that the caller gave, and what the event under it says.
type given struct {
	index   int // of the event in the call
	id      string
	content []byte
}

// contentOf is a hash of what an event says. Time, schema and extensions are left out: a caller that repeats itself
// after an error whose outcome it does not know has another clock and another trace, and means the same event. A
// version that the caller names is a part: the third event of a key is not its fourth.
func contentOf(e cloudevent.Event) []byte {
	h := sha256.New()
	var size [8]byte
	for _, part := range []string{e.Source, e.Type, e.Topic, e.Key, strconv.FormatInt(e.Version, 10), string(e.Data)} {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// givenIDs collects the ids that a call gives.
type givenIDs struct {
	outbox *Outbox
	list   []given
	seen   map[string][]byte // contents
}

// add reports whether the call has the event already. The error is always an [*EventError].
func (ids *givenIDs) add(i int, e cloudevent.Event) (repeated bool, err error) {
	content := contentOf(e)
	earlier, twice := ids.seen[e.ID]
	switch {
	case twice && bytes.Equal(earlier, content):
		return true, nil
	case twice && ids.outbox.cfg.OnConflict != ConflictWarn:
		conflict := idConflict(e.ID)
		conflict.Index = i
		return false, conflict
	case twice:
		ids.outbox.warnOfConflict(e.ID)
		return false, nil
	}
	if ids.seen == nil {
		ids.seen = map[string][]byte{}
	}
	ids.seen[e.ID] = content
	ids.list = append(ids.list, given{index: i, id: e.ID, content: content})
	return false, nil
}

func idConflict(id string) *EventError {
	return refuse(CodeIDConflict,
		"the id "+id+" belongs to an event with another source, type, topic, key, version or payload")
}

// recordIDsSQL makes the transaction the owner of ids, in their order. Of two transactions the second one waits here
// until the first has ended, and then sees its row, which a plain select of the same statement would not; in a
// transaction with an older snapshot it fails with 40001.
const recordIDsSQL = `
insert into public.outbox_given_id as g (event_id, content)
select e.id::uuid, e.content from unnest($1::text[], $2::bytea[]) as e (id, content) order by e.id::uuid
on conflict (event_id) do update set repeats = g.repeats + 1
returning g.event_id::text, g.content, g.repeats`

func recordIDsArgs(list []given) []any {
	ids, contents := make([]string, len(list)), make([][]byte, len(list))
	for i, g := range list {
		ids[i], contents[i] = g.id, g.content
	}
	return []any{ids, contents}
}

// readRepeated returns the ids under which the same event has been added before.
func (o *Outbox) readRepeated(rows pgx.Rows, list []given) (repeated map[string]bool, err error) {
	byID := make(map[string]given, len(list))
	for _, g := range list {
		byID[g.id] = g
	}
	repeated = map[string]bool{}
	var conflict *EventError
	var id string
	var content []byte
	var repeats int
	_, err = pgx.ForEachRow(rows, []any{&id, &content, &repeats}, func() error {
		g := byID[id]
		switch {
		case repeats == 0:
		case bytes.Equal(content, g.content):
			repeated[id] = true
		case o.cfg.OnConflict == ConflictWarn:
			o.warnOfConflict(id)
		case conflict == nil || g.index < conflict.Index:
			conflict = idConflict(id)
			conflict.Index = g.index
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("record given ids: %w", err)
	}
	if conflict != nil {
		return nil, conflict
	}
	return repeated, nil
}

func (o *Outbox) warnOfConflict(id string) {
	o.cfg.Log.Warn("event id added again with another content", "event_id", id)
}
