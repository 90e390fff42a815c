package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// instant is a moment as people write it: RFC 3339, or how long ago it was, such as 90s, 30m, 1h or 2d.
type instant struct{ time.Time }

var errNoInstant = errors.New("is neither a time such as 2026-11-21T10:00:00Z nor how long ago, such as 30m, 1h or 2d")

// UnmarshalText reads it.
func (i *instant) UnmarshalText(text []byte) error {
	written := string(text)
	if at, err := time.Parse(time.RFC3339, written); err == nil {
		if at.Year() < 1000 { // the zero of programs: a condition that says nothing
			return errNoInstant
		}
		i.Time = at
		return nil
	}
	if days, inDays := strings.CutSuffix(written, "d"); inDays {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil || n == 0 {
			return errNoInstant
		}
		i.Time = time.Now().AddDate(0, 0, -int(n))
		return nil
	}
	ago, err := time.ParseDuration(written)
	if err != nil || ago <= 0 {
		return errNoInstant
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

// checkWindow refuses one that ends before it begins.
func checkWindow(since, until instant) error {
	if !until.IsZero() && !since.Before(until.Time) {
		return usage("--until " + moment(until.Time) + " is not after --since " + moment(since.Time))
	}
	return nil
}
