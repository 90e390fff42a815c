// Package listener bounds how many connections a listener has open, so that the clients of one part of a process do not
// take the descriptors of all others.
package listener

import (
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"example.com/twinbox/internal/failure"
)

// Shares of the descriptors that a process may open. Together they are less than two thirds, also where all parts of
// the local system are one process; the rest is for databases, brokers and files.
const (
	API    = 4  // a quarter: the listener that strangers reach
	Broker = 8  // the embedded broker's
	Small  = 16 // of operators and of the local mailbox, each
)

// Least and Most bound a share for any number of descriptors.
const (
	Least = 8
	Most  = 10_000
)

// Share is how many connections a listener should have open that gets one part in so many of the descriptors.
func Share(parts int) int {
	return max(Least, min(Descriptors()/parts, Most))
}

// Limit returns the listener with at most n of its connections open. Others wait where the system keeps them until one
// closes; they are not refused. Accept outlives what passes, such as a process out of descriptors, and returns an error
// only when nothing more will come.
func Limit(ln net.Listener, n int) net.Listener {
	closed := make(chan struct{})
	return &limited{
		Listener: ln, free: make(chan struct{}, n), closed: closed,
		close: sync.OnceValue(func() error { close(closed); return ln.Close() }),
	}
}

type limited struct {
	net.Listener
	free   chan struct{} // one element per open connection
	closed chan struct{}
	close  func() error
}

// The pauses after accepts that failed, from the first in a row.
const (
	shortestPause = 5 * time.Millisecond
	longestPause  = time.Second
)

// Accept waits for its turn and for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	for pauses := (failure.Backoff{Min: shortestPause, Max: longestPause}); ; {
		conn, err := l.Listener.Accept()
		if err == nil {
			return &counted{Conn: conn, release: sync.OnceFunc(func() { <-l.free })}, nil
		}
		if !passes(err) {
			<-l.free
			return nil, err
		}
		select {
		case <-time.After(pauses.Next()):
		case <-l.closed: // as the next Accept says
		}
	}
}

// Close closes the listener and ends an Accept that waits. Connections stay open.
func (l *limited) Close() error { return l.close() }

// passes tells what is over when others have closed something, or was the client's, from the end of the listener.
func passes(err error) bool {
	number, _ := errors.AsType[syscall.Errno](err)
	return slices.Contains([]syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.ECONNRESET,
	}, number)
}

// counted gives its place back when it is closed.
type counted struct {
	net.Conn
	release func()
}

// CloseWrite says that nothing more will be sent. An HTTP server does so behind an answer to a request that it has not
// read to its end, and waits: closed at once, the connection would be reset, and the answer with it.
func (c *counted) CloseWrite() error {
	if half, can := c.Conn.(interface{ CloseWrite() error }); can {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close closes the connection. Closing twice is fine.
func (c *counted) Close() error {
	defer c.release()
	return c.Conn.Close()
}
