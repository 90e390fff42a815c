package local

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// terminal is what was shown.
type terminal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *terminal) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Thousands of one message are one line, and one a minute, so that the addresses above stay where they can be read.
func TestAFloodIsALineAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &terminal{}
		s := newScreen(out, false)
		log := slog.New(s.handler("customer")).With("consumer", "customer.profile")
		for i := range 3000 {
			log.Error("event dead-lettered", "event_id", i)
			log.Info("not for the screen")
		}
		log.Error("another message")
		require.Equal(t, 2, strings.Count(out.String(), "\n"), out.String())
		require.Contains(t, out.String(), "msg=\"event dead-lettered\" part=customer consumer=customer.profile event_id=0\n")

		time.Sleep(screenEvery) //nolint:forbidigo // the clock of a bubble
		synctest.Wait()
		require.Contains(t, out.String(),
			"part=customer: 2999 more of \"event dead-lettered\" within a minute; all of them are in customer.log\n")
		require.Equal(t, 3, strings.Count(out.String(), "\n"), out.String())

		time.Sleep(screenEvery) //nolint:forbidigo // the clock of a bubble
		synctest.Wait()
		log.Error("event dead-lettered", "event_id", 3000)
		require.Equal(t, 4, strings.Count(out.String(), "\n"), "after a quiet minute it is news again")
		log.Error("event dead-lettered", "event_id", 3001)
		s.close()
		require.Contains(t, out.String(), "1 more of", "nothing is kept back at the end")
	})
}

func TestVerboseShowsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &terminal{}
		s := newScreen(out, true)
		log := slog.New(s.handler("customer"))
		for range 10 {
			log.Info("said")
		}
		s.close()
		require.Equal(t, 10, strings.Count(out.String(), "msg=said"))
	})
}
