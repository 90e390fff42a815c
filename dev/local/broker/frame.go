package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/net/netutil"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/web"
)

const (
	// maxFrameBytes is Kafka's own socket.request.max.bytes.
	maxFrameBytes = 100 << 20
	headTimeout   = 30 * time.Second
	// The size does not count itself.
	headBytes, sizeBytes = 8, 4
)

var errNotKafka = errors.New("read request: this is not the Kafka protocol")

type checking struct {
	net.Listener

	ended sync.Once
	done  chan struct{} // closed when the listener accepts no more
}

func newChecking(ln net.Listener) *checking {
	return &checking{Listener: netutil.LimitListener(ln, web.ShareDescriptors(8)), done: make(chan struct{})}
}

// Accept returns only the error of a closed listener: the broker stops accepting at the first error. Others pass, such
// as too many descriptors.
func (c *checking) Accept() (net.Conn, error) {
	for pauses := (failure.Backoff{Min: 5 * time.Millisecond, Max: time.Second}); ; {
		conn, err := c.Listener.Accept()
		switch {
		case err == nil:
			return &checked{Conn: conn}, nil
		case errors.Is(err, net.ErrClosed):
			c.ended.Do(func() { close(c.done) })
			return nil, err
		}
		_ = failure.Sleep(context.Background(), pauses.Next())
	}
}

// checked is a connection whose first request begins like one of Kafka. The broker takes any first four bytes for a
// length and allocates as much, 1.2 GB for "GET ". An unknown kind of request crashes it.
type checked struct {
	net.Conn

	isChecked bool
	head      []byte // read, checked and not yet passed on
}

func (c *checked) Read(p []byte) (int, error) {
	if !c.isChecked {
		if err := c.check(); err != nil {
			return 0, err
		}
	}
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

func (c *checked) check() error {
	if err := c.SetReadDeadline(time.Now().Add(headTimeout)); err != nil {
		return err
	}
	c.isChecked, c.head = true, make([]byte, headBytes)
	if _, err := io.ReadFull(c.Conn, c.head); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(c.head)
	kind, version := int16(binary.BigEndian.Uint16(c.head[4:])), int16(binary.BigEndian.Uint16(c.head[6:]))
	if size < headBytes-sizeBytes || size > maxFrameBytes || kmsg.RequestForKey(kind) == nil || version < 0 {
		return errNotKafka
	}
	return c.SetReadDeadline(time.Time{})
}
