package kafka

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
