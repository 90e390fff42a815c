package kafka

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
)

type recordedConnection struct {
	net.Conn
	deadline time.Time
}

func (*recordedConnection) Write(b []byte) (int, error) { return len(b), nil }

func (c *recordedConnection) SetReadDeadline(at time.Time) error {
	c.deadline = at
	return nil
}

func TestOnlyJoiningAGroupMayTakeLong(t *testing.T) {
	t.Parallel()
	recorded := &recordedConnection{}
	conn := &timedConnection{Conn: recorded, timeout: time.Second}
	late := time.Now().Add(time.Hour)
	for kind, isLong := range map[byte]bool{1: false, 8: false, 11: true, 12: false, 14: true} {
		_, err := conn.Write([]byte{0, 0, 0, 2, 0, kind})
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(late))
		require.Equal(t, isLong, recorded.deadline.Equal(late), "kind %d", kind)
	}
	soon := time.Now()
	require.NoError(t, conn.SetReadDeadline(soon))
	require.Equal(t, soon, recorded.deadline)
}

// countedContext never ends, and counts those that wait for its end.
type countedContext struct {
	context.Context
	done    chan struct{}
	waiting atomic.Int64
}

func (c *countedContext) Done() <-chan struct{} { return c.done }

// AfterFunc is what the package context calls instead of waiting itself.
func (c *countedContext) AfterFunc(func()) (stop func() bool) {
	c.waiting.Add(1)
	return func() bool {
		c.waiting.Add(-1)
		return true
	}
}

func TestAPublisherKeepsNoClosedConnection(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	closing := &countedContext{Context: t.Context(), done: make(chan struct{})}
	cfg := Config{Brokers: cluster.ListenAddrs()}
	p := &Publisher{cfg: cfg.WithDefaults(), closing: closing}
	require.NoError(t, p.askForProducerID())
	require.Zero(t, closing.waiting.Load())
}
