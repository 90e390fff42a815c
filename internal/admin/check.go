package admin

import (
	"fmt"
	"unicode/utf8"
)

// action is what every change brings along.
type action struct {
	by, reason string
	dryRun     bool
}

func newAction(by, reason string, dryRun bool) (action, error) {
	if err := checkText("by", by, 100); err != nil {
		return action{}, err
	}
	if err := checkText("reason", reason, 500); err != nil {
		return action{}, err
	}
	return action{by: by, reason: reason, dryRun: dryRun}, nil
}

// checkText accepts one line of printable text.
func checkText(member, value string, longest int) error {
	switch n := utf8.RuneCountInString(value); {
	case n == 0:
		return invalid(member, "is empty")
	case n > longest:
		return invalid(member, fmt.Sprintf("is longer than %d characters", longest))
	}
	for _, r := range value {
		if r < ' ' || r == 0x7f {
			return invalid(member, "holds control characters")
		}
	}
	return nil
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)

func limitOf(limit *int) (int, error) {
	switch {
	case limit == nil:
		return defaultLimit, nil
	case *limit < 1 || *limit > maxLimit:
		return 0, invalidParameter("limit", fmt.Sprintf("is not within 1 to %d", maxLimit))
	}
	return *limit, nil
}

// value is what an optional member or parameter holds, or nothing.
func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}
