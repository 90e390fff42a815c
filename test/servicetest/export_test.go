package servicetest

import (
	"testing"
	"time"
)

// On returns the system for another test, which it fails after limit.
func (s *System) On(t testing.TB, limit time.Duration) *System {
	return &System{t: t, parts: s.parts, limit: limit}
}

// Busy returns the pending work of this moment.
func (s *System) Busy() ([]string, error) {
	return s.look(s.t.Context())
}
