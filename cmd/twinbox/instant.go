package main

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"
)

// instant is a moment as people write it: RFC 3339, or how long ago it was, such as 90s, 30m, 1h or 2d.
type instant struct{ time.Time }

// UnmarshalText reads it.
func (i *instant) UnmarshalText(text []byte) (err error) {
	if i.Time, err = time.Parse(time.RFC3339, string(text)); err == nil && i.Year() >= 1000 { // not the zero of programs
		return nil
	}
	ago, err := time.ParseDuration(string(text))
	if number, inDays := strings.CutSuffix(string(text), "d"); inDays {
		var days uint64
		days, err = strconv.ParseUint(number, 10, 16)
		ago = time.Duration(days) * 24 * time.Hour
	}
	if err != nil || ago <= 0 {
		return errors.New("is neither a time such as 2026-11-21T10:00:00Z nor how long ago, such as 30m, 1h or 2d")
	}
	i.Time = time.Now().Add(-ago)
	return nil
}

// given is the moment as a parameter that is sent only where it is given.
func (i *instant) given() *time.Time {
	if i.IsZero() {
		return nil
	}
	return &i.Time
}

// Window is a stretch of time.
type Window struct {
	Since instant `help:"At this time or later: RFC 3339, or how long ago, such as 1h or 2d." env:"-" placeholder:"TIME"`
	Until instant `help:"Before this time." env:"-" placeholder:"TIME"`
}

// AfterApply refuses one that ends before it begins.
func (w *Window) AfterApply() error {
	if !w.Until.IsZero() && !w.Since.Before(w.Until.Time) {
		return usage("--until " + moment(w.Until.Time) + " is not after --since " + moment(w.Since.Time))
	}
	return nil
}

// positive is a number of things, or the place of one: none at all is said by leaving the flag out.
type positive int64

// UnmarshalText reads it.
func (p *positive) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 1 {
		return errors.New("is a number above 0, or left out")
	}
	*p = positive(n)
	return nil
}

// most is a limit for a request, where another one is the rule.
func (p positive) most(rule int) *int { return new(int(cmp.Or(p, positive(rule)))) }
