package kafka

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"
)

// groupDialer opens a consumer's connections. sarama has one read timeout for all answers, and joining a group may take
// minutes: with that timeout, a broker that vanished would keep its partitions unread for as long.
type groupDialer struct {
	timeout time.Duration // of all other answers, and of connecting; a fetch without records takes MaxWaitTime
	tls     *tls.Config   // nil: none
}

// Dial replaces sarama's dialer, and its TLS: the requests must be readable here.
func (d groupDialer) Dial(network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: d.timeout}
	dial := plain.DialContext
	if d.tls != nil {
		dial = (&tls.Dialer{NetDialer: plain, Config: d.tls}).DialContext
	}
	conn, err := dial(context.Background(), network, address)
	if err != nil {
		return nil, err
	}
	return &groupConnection{Conn: conn, timeout: d.timeout}, nil
}

type groupConnection struct {
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
func (c *groupConnection) Write(request []byte) (int, error) {
	if len(request) >= 6 {
		kind := binary.BigEndian.Uint16(request[4:])
		c.isLong.Store(kind == joinGroup || kind == syncGroup)
	}
	return c.Conn.Write(request)
}

// SetReadDeadline is called before each answer.
func (c *groupConnection) SetReadDeadline(at time.Time) error {
	if soon := time.Now().Add(c.timeout); !c.isLong.Load() && soon.Before(at) {
		at = soon
	}
	return c.Conn.SetReadDeadline(at)
}
