package consumer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/kafka/internal/reader"
	"example.com/twinbox/test/testkit"
)

// A partition whose topic cannot be told from another is not read. For a while that is an election; then it has to be
// said, for nothing else would.
func TestAPartitionThatCannotBeIdentifiedIsUnhealthy(t *testing.T) {
	t.Parallel()
	m := quick(1, 0)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m.cfg.Now = func() time.Time { return now }
	defer m.cancel()
	m.reader = reader.New([]string{"127.0.0.1:1"}, kafka.Config{}.Client())
	defer func() { require.NoError(t, m.reader.Close()) }()
	session := newFakeSession(1)
	p := newPartition(m, session, session)
	identified := make(chan bool)
	go func() { identified <- p.identify() }()
	testkit.Until(t, func() bool {
		return !p.progress.Standing().Refused.IsZero()
	})
	p.leave(nil)
	require.False(t, <-identified)
	require.NoError(t, m.judge(p.progress.Standing()))
	now = now.Add(m.cfg.UnhealthyAfter + time.Second)
	require.ErrorContains(t, m.judge(p.progress.Standing()), "cannot be read")
}
