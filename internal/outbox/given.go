package outbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
)

// OnConflict decides about an event whose id, given by the caller, belongs to a different event already.
type OnConflict string

// The values of [Config.OnConflict].
const (
	ConflictError OnConflict = "error" // the event is refused with [CodeIDConflict]
	ConflictWarn  OnConflict = "warn"  // it is added and logged; consumers refuse one of the two
)

// Time, schema and extensions do not count: a caller that repeats itself has a different clock and trace.
func contentOf(e event.Event) []byte {
	h := sha256.New()
	var size [8]byte
	for _, part := range []string{e.Source, e.Type, e.Topic, e.Key, strconv.FormatInt(e.Version, 10), string(e.Data)} {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// The second of two transactions waits at the id until the first ends; with an older snapshot it fails with 40001.
const insertGivenSQL = `
with given as (
    insert into public.outbox_given_id as g (event_id, content) values ($3::text::uuid, $11)
    on conflict (event_id) do update set repeats = g.repeats + 1
    returning repeats, content
), counted as (
    insert into public.outbox_key as k (topic, key, version)
    select $1, $2, 1 from given
    where (repeats = 0 or content <> $11)
        and ($10::bigint < 2 or exists (select from public.outbox_key o where o.topic = $1 and o.key = $2))
    on conflict (topic, key) do update set version = k.version + 1 where $10::bigint in (0, k.version + 1)
    returning version
), inserted as (` + insertRowSQL + `
)
select repeats > 0, content, version, position from given left join inserted on true`

func (o *Outbox) readGiven(row pgx.Row, e *entry) error {
	var known bool
	var content []byte
	var version, position *int64
	if err := row.Scan(&known, &content, &version, &position); err != nil {
		return fmt.Errorf("insert event with a given id: %w", err)
	}
	switch {
	case known && bytes.Equal(content, e.givenHash):
		e.added.Repeated = true
		return nil
	case known && o.cfg.OnConflict == ConflictError:
		return &EventError{
			Code: CodeIDConflict, Index: e.index,
			Detail: "the id " + e.ID + " belongs to an event with another source, type, topic, key, version or payload",
		}
	case version == nil:
		return ErrVersionConflict
	case known:
		o.cfg.Log.Warn("event id added again with another content", "event_id", e.ID)
	}
	e.added.Version, e.added.Position = *version, *position
	o.countAdded(e)
	return nil
}
