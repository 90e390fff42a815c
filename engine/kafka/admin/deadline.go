package admin

import (
	"context"
	"net"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/kafka"
)

// within are the settings of a client for one question. Each broker gets its share of the time that is left, and every
// connection ends with it.
func within(ctx context.Context, cfg kafka.Config) *sarama.Config {
	deadline, ends := ctx.Deadline()
	if !ends {
		return cfg.Client()
	}
	share := time.Until(deadline) / time.Duration(len(cfg.Brokers))
	cfg.RequestTimeout = max(min(cfg.RequestTimeout, share), time.Millisecond)
	settings := cfg.Client()
	settings.Net.Proxy.Enable, settings.Net.Proxy.Dialer = true, deadlineDialer{deadline.Add(afterwards)}
	return settings
}

// afterwards is how much later than a question its connections end: the caller's context is over by then, and says why.
const afterwards = 50 * time.Millisecond

// deadlineDialer opens connections that end at a deadline. The settings bound each read, and a question takes several:
// a broker that accepts and never answers would be asked for its versions, then for its metadata, each for the whole
// time.
type deadlineDialer struct{ end time.Time }

// Dial is the method that sarama calls in the place of its own dialer.
func (d deadlineDialer) Dial(network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithDeadline(context.Background(), d.end)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &deadlineConn{conn, d.end}, nil
}

// deadlineConn takes no deadline that is later than its own.
type deadlineConn struct {
	net.Conn
	end time.Time
}

func (c *deadlineConn) SetDeadline(t time.Time) error { return c.Conn.SetDeadline(c.earlier(t)) }
func (c *deadlineConn) SetReadDeadline(t time.Time) error {
	return c.Conn.SetReadDeadline(c.earlier(t))
}

func (c *deadlineConn) SetWriteDeadline(t time.Time) error {
	return c.Conn.SetWriteDeadline(c.earlier(t))
}

func (c *deadlineConn) earlier(t time.Time) time.Time {
	if t.IsZero() || t.After(c.end) {
		return c.end
	}
	return t
}
