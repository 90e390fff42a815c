package consumer

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"example.com/twinbox/engine/failure"
)

// status is what a member says about itself: one log line per change, and the answer for a readiness check.
type status struct {
	topic string
	now   func() time.Time
	log   *slog.Logger

	mu        sync.Mutex
	consuming bool
	since     time.Time // of the last change of consuming
	last      string    // the trouble last logged, and its code
	code      string
	met       time.Time // when it came last, logged or not
	stopped   error
	ended     <-chan struct{} // closed when the member has stopped, or the end was asked for
}

func (s *status) joined() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.consuming {
		s.consuming, s.since, s.last, s.code = true, s.now(), "", ""
		s.log.Info("consuming")
	}
}

func (s *status) left() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.consuming {
		s.consuming, s.since = false, s.now()
	}
}

// troubleOver is after how long a trouble that has not come again is a new one: longer than any wait between two
// attempts.
const troubleOver = 5 * time.Minute

// trouble logs an error unless it is the one that was logged last and goes on: a broker that is down for an hour is one
// line.
func (s *status) trouble(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, now := err.Error(), s.now()
	isNews := text != s.last || now.Sub(s.met) > troubleOver
	s.met = now
	if isNews && s.stopped == nil && !isClosed(s.ended) {
		s.last, s.code = text, failure.Examine(err).Code
		s.log.Warn("consume failed, trying again", "code", s.code, "error", err)
	}
}

// stop records why the member ends for good; the first reason counts, and none does when the end was asked for.
func (s *status) stop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped != nil || isClosed(s.ended) {
		return
	}
	s.stopped = err
	s.log.Error("consuming stopped", "error", err)
}

// reason is why the member ended for good; nil when that was intended.
func (s *status) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// healthy is patient with a membership that has not come yet, and less so with one that is known to fail.
func (s *status) healthy(patience, failing time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped != nil:
		return s.stopped
	case isClosed(s.ended), s.consuming:
		return nil
	}
	reason := "no answer yet"
	if s.last != "" && s.since.Sub(s.met) <= troubleOver {
		reason, patience = s.code+": "+s.last, failing
	}
	if away := s.now().Sub(s.since); away > patience {
		return fmt.Errorf("consume %s: not a member of the group for %s: %s", s.topic,
			away.Round(time.Second), reason)
	}
	return nil
}
