package operate

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/deadletter"
)

// Edit is what an operator wants to be replayed instead of what came. A nil field leaves that part as it is.
type Edit struct {
	Headers []deadletter.Header // all of them, in their order
	Set     []deadletter.Header // each replaces those of its name, or comes last
	Payload []byte
}

const updateEdited = `
update public.dead_letter
set edited_headers = $2, edited_payload = $3, edited_by = $4, edited_at = clock_timestamp()
where id = $1`

// Edit puts another record in the place of the one that came, which stays readable beside it, with the editor's name.
// Nothing is checked but that the dead letter waits: the new content is decoded and checked when it is replayed, by the
// consumer that knows its contract. A later edit replaces an earlier one; the audit trail names both authors.
func (s *Store) Edit(ctx context.Context, id int64, e Edit, c audit.Change) (l deadletter.Letter, err error) {
	if e.Headers == nil && len(e.Set) == 0 && e.Payload == nil {
		return l, &Error{CodeNothingToEdit, "neither headers nor payload are given"}
	}
	for _, set := range e.Set {
		if set.Name == "" {
			return l, &Error{CodeInvalidHeaders, "a header has no name"}
		}
	}
	err = c.Make(ctx, s.pool, func(tx pgx.Tx) (none audit.Action, err error) {
		l, err := get(ctx, tx, id, "for update")
		if err != nil {
			return none, err
		}
		if l.State != deadletter.Waiting {
			return none, &Error{CodeNotWaiting, fmt.Sprintf("dead letter %d is %s", id, l.State)}
		}
		headers, payload := e.apply(l)
		encoded, err := deadletter.EncodeHeaders(headers)
		if err != nil {
			return none, err
		}
		if _, err := tx.Exec(ctx, updateEdited, id, encoded, payload, c.By); err != nil {
			return none, fmt.Errorf("edit dead letter: %w", err)
		}
		return action(c, "edit", id, l.State, l.State), err
	})
	if err != nil {
		return l, err
	}
	return get(ctx, s.pool, id, "")
}

// apply is the record that the edit makes of the dead letter's current one.
func (e Edit) apply(l deadletter.Letter) (headers []deadletter.Header, payload []byte) {
	headers, payload = l.Current()
	if e.Headers != nil {
		headers = e.Headers
	}
	if e.Payload != nil {
		payload = e.Payload
	}
	for _, set := range e.Set {
		headers = slices.DeleteFunc(slices.Clone(headers), func(h deadletter.Header) bool { return h.Name == set.Name })
		headers = append(headers, set)
	}
	return headers, payload
}
