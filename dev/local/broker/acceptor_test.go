package broker

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// The end of the accept loop is heard of: a broker that takes no connections looks alive to those that have one.
func TestAnAcceptLoopThatEndsSaysSo(t *testing.T) {
	t.Parallel()
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	a := newAcceptor(raw)
	go func() {
		for {
			if _, err := a.Accept(); err != nil {
				return
			}
		}
	}()
	b := &Broker{acceptor: a}
	require.NoError(t, b.Err())
	require.NoError(t, raw.Close())
	<-b.Done()
	require.ErrorContains(t, b.Err(), "accept connections")
}
