package servicetest

import (
	"testing"
	"time"
)

// On is the system for another test, which it fails instead, and its patience.
func (s *System) On(t testing.TB, limit time.Duration) *System {
	return &System{t: t, parts: s.parts, limit: limit}
}

// Busy is what is under way at this moment.
func (s *System) Busy() ([]string, error) {
	return s.look(s.t.Context())
}

// Report is what a test that failed shows.
func (s *System) Report() string { return s.report() }
