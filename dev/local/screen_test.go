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
		log.Error("event dead-lettered", "event_id", 3000)
		log.Error("event dead-lettered", "event_id", 3001)
		require.Contains(t, out.String(), "event_id=3000 more=\"2999 since the last line, all in customer.log\"\n")
		require.Equal(t, 3, strings.Count(out.String(), "\n"), out.String())
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
		require.Equal(t, 10, strings.Count(out.String(), "msg=said"))
	})
}
