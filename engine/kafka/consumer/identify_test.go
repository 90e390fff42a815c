package consumer

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/waittest"
	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/engine/kafka/internal/reader"
)

// A partition whose topic cannot be told from another is not read. For a while that is an election; then it has to be
// said, for nothing else would.
func TestAPartitionThatCannotBeIdentifiedIsUnhealthy(t *testing.T) {
	t.Parallel()
	cfg := quick(1, 0)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cfg.Now = func() time.Time { return now }
	m := newMember(context.Background(), cfg, slog.New(slog.DiscardHandler))
	defer m.cancel()
	m.reader = reader.New([]string{"127.0.0.1:1"}, kafka.Config{}.Client())
	defer func() { require.NoError(t, m.reader.Close()) }()
	session := newFakeSession(1)
	p := newWorker(m, session, session)
	identified := make(chan bool)
	go func() { identified <- p.identify() }()
	waittest.Until(t, func() bool {
		return !p.standing().Refused.IsZero()
	})
	close(p.leaving)
	require.False(t, <-identified)
	require.NoError(t, p.healthy())
	now = now.Add(cfg.UnhealthyAfter + time.Second)
	require.ErrorContains(t, p.healthy(), "cannot be read")
}
