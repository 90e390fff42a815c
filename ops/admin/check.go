package admin

import (
	"fmt"
	"strings"
	"unicode"
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

// checkText accepts one line of text in which somebody has written something.
func checkText(member, value string, longest int) error {
	switch {
	case strings.TrimSpace(value) == "":
		return invalid(member, "is empty")
	case utf8.RuneCountInString(value) > longest:
		return invalid(member, fmt.Sprintf("is longer than %d characters", longest))
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		return invalid(member, "holds control characters, or is not UTF-8")
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
