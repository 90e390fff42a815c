package broker

import (
	"fmt"
	"net"
	"sync"

	"golang.org/x/net/netutil"

	"example.com/twinbox/internal/web"
)

// acceptor is the broker's listener. It bounds the connections. The broker stops accepting at the first error and
// reports none; done does.
type acceptor struct {
	net.Listener
	closing sync.Once
	ending  sync.Once
	closed  chan struct{}
	done    chan struct{}
	err     error // set before done is closed
}

func newAcceptor(ln net.Listener) *acceptor {
	return &acceptor{
		Listener: netutil.LimitListener(ln, web.ShareDescriptors(8)),
		closed:   make(chan struct{}), done: make(chan struct{}),
	}
}

// Accept returns connections that speak Kafka's protocol or end.
func (a *acceptor) Accept() (net.Conn, error) {
	conn, err := a.Listener.Accept()
	if err != nil {
		a.end(err)
		return nil, err
	}
	return newFramed(conn), nil
}

// end says once that nothing more is accepted. An error after Close is Close's.
func (a *acceptor) end(err error) {
	a.ending.Do(func() {
		select {
		case <-a.closed:
		default:
			a.err = fmt.Errorf("accept connections: %w", err)
		}
		close(a.done)
	})
}

// Close stops accepting.
func (a *acceptor) Close() error {
	a.closing.Do(func() { close(a.closed) })
	return a.Listener.Close()
}
