package kafka

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

// dialer replaces sarama's. Its connections end with ctx, and only answers about a group's members may take longer than
// timeout: sarama has one read timeout for all answers, and joining a group may take minutes.
type dialer struct {
	ctx     context.Context //nolint:containedctx // of the connections
	timeout time.Duration
	tls     *tls.Config // nil: none
}

// use encrypts here, since the requests must be readable.
func (d dialer) use(settings *sarama.Config) {
	settings.Net.Proxy.Enable, settings.Net.Proxy.Dialer = true, d
	settings.Net.TLS.Enable = false
}

// Dial is called for each connection.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: d.timeout}
	dial := plain.DialContext
	if d.tls != nil {
		dial = (&tls.Dialer{NetDialer: plain, Config: d.tls}).DialContext
	}
	conn, err := dial(d.ctx, network, address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(d.ctx, func() { _ = conn.Close() })
	return &timedConnection{Conn: conn, timeout: d.timeout}, nil
}

type timedConnection struct {
	net.Conn
	timeout time.Duration
	isLong  atomic.Bool // the last request joins a group
}

// The kinds of requests whose answers wait for all members of the group.
const (
	joinGroup = 11
	syncGroup = 14
)

// Write gets a whole request: its length, its kind and the rest.
func (c *timedConnection) Write(request []byte) (int, error) {
	if len(request) >= 6 {
		kind := binary.BigEndian.Uint16(request[4:])
		c.isLong.Store(kind == joinGroup || kind == syncGroup)
	}
	return c.Conn.Write(request)
}

// SetReadDeadline is called before each answer.
func (c *timedConnection) SetReadDeadline(at time.Time) error {
	if soon := time.Now().Add(c.timeout); !c.isLong.Load() && soon.Before(at) {
		at = soon
	}
	return c.Conn.SetReadDeadline(at)
}
