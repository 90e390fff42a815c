package consumer

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTroubleIsOneLineForAsLongAsItLasts: a broker that is down for an hour is one line, and the same trouble an hour
// after it had ended is another, although the member was one all the time.
func TestTroubleIsOneLineForAsLongAsItLasts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var out bytes.Buffer
	s := quick(1, 0)
	defer s.cancel()
	s.cfg.Now, s.log = func() time.Time { return now }, slog.New(slog.NewTextHandler(&out, nil))
	lines := func() int { return strings.Count(out.String(), "consume failed") }
	s.become(true)
	for range 60 {
		s.trouble(errors.New("commit refused"))
		now = now.Add(time.Minute)
	}
	require.Equal(t, 1, lines())
	now = now.Add(time.Hour)
	s.trouble(errors.New("commit refused"))
	require.Equal(t, 2, lines())
	s.trouble(errors.New("something else"))
	require.Equal(t, 3, lines())
}

// TestAnOldTroubleIsNoReason: what went wrong long before the membership ended did not end it.
func TestAnOldTroubleIsNoReason(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := quick(1, 0)
	defer s.cancel()
	s.cfg.Now, s.cfg.UnhealthyAfter = func() time.Time { return now }, time.Second
	s.become(true)
	s.trouble(errors.New("commit refused"))
	now = now.Add(time.Hour)
	s.become(false)
	now = now.Add(time.Minute)
	require.ErrorContains(t, s.absence(), "no answer yet")
	s.trouble(errors.New("connection refused"))
	now = now.Add(time.Hour)
	require.ErrorContains(t, s.absence(), "connection refused")
	s.cfg.UnhealthyAfter = 2 * time.Hour
	require.ErrorContains(t, s.absence(), "connection refused", "a reason need not be waited for")
}
