package deadletter

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Filter selects the dead letters that meet all its conditions. Type is whole, or the last name before its version.
type Filter struct {
	IDs      []int64   `json:"ids,omitempty"`
	Consumer string    `json:"consumer,omitempty"`
	Type     string    `json:"type,omitempty"`
	Key      string    `json:"key,omitempty"`
	EventID  string    `json:"event_id,omitempty"`
	Code     string    `json:"code,omitempty"`
	Error    string    `json:"error,omitempty"` // case-insensitive
	State    State     `json:"state,omitempty"`
	Since    time.Time `json:"since,omitzero"` // of the last failure, inclusive
	Until    time.Time `json:"until,omitzero"` // exclusive
	// Limit bounds a list (default 100) or a change (default: no limit).
	Limit int `json:"limit,omitempty"`
	// After is the last ID of the page before.
	After int64 `json:"after,omitempty"`
}

// Selective reports whether the filter has a condition other than State, Limit and After.
func (f Filter) Selective() bool {
	return len(f.IDs) > 0 || f.Consumer != "" || f.Type != "" || f.Key != "" || f.EventID != "" || f.Code != "" ||
		f.Error != "" || !f.Since.IsZero() || !f.Until.IsZero()
}

func (f Filter) check() error {
	switch {
	case f.Limit < 0 || f.After < 0:
		return &Error{CodeInvalidFilter, "limit and after are not negative"}
	case !slices.Contains([]State{"", Waiting, Replayed, Discarded}, f.State):
		return &Error{CodeInvalidFilter, fmt.Sprintf("state %q is none of waiting, replayed, discarded", f.State)}
	}
	return nil
}

// Where returns the filter without Limit as an SQL condition. Its arguments count from first.
func (f Filter) Where(first int) (condition string, args []any) {
	parts := []string{"true"}
	add := func(holds bool, format string, arg any) {
		if holds {
			parts = append(parts, fmt.Sprintf(format, first+len(args)))
			args = append(args, arg)
		}
	}
	add(len(f.IDs) > 0, "id = any ($%d)", f.IDs)
	add(f.Consumer != "", "consumer = $%d", f.Consumer)
	add(f.Type != "", "$%d in (event_type, split_part(event_type, '.', -2))", f.Type)
	add(f.Key != "", "key_start = $%d", KeyStart([]byte(f.Key)))
	add(f.Key != "", "key = $%d", []byte(f.Key))
	add(f.EventID != "", "event_id = $%d", f.EventID)
	add(f.Code != "", "code = $%d", f.Code)
	add(f.Error != "", "strpos(lower(error), lower($%d)) > 0", f.Error)
	add(f.State == Replayed || f.State == Discarded, "state = $%d", string(f.State))
	add(!f.Since.IsZero(), "failed_at >= $%d", f.Since)
	add(!f.Until.IsZero(), "failed_at < $%d", f.Until)
	add(f.After > 0, "id > $%d", f.After)
	if f.State == Waiting { // as text: the planner must see that a partial index fits
		parts = append(parts, "state = 'waiting'")
	}
	return strings.Join(parts, " and "), args
}
