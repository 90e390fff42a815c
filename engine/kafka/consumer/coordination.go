package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

// coordinatedClient is the client of a consumer group in which the group's coordinator has connections of its own.
// sarama sends a request when the last one on its connection was answered, and the coordinator may well be a broker
// that records are read from. A request to join is answered when every member has come or its session has ended:
// reading would stand still meanwhile, in all members, which cooperative rebalancing is there to spare. And heartbeats
// and commits would wait behind each fetch that waits for records.
//
// Nor do they share a patience: a broker that is read from and vanishes without a word is given up as soon as any other
// request is, and its successor asked, where an answer to a join may take as long as a rebalance. A coordinator that
// vanishes between two rebalances is given up as soon, too, and looked for anew: the next one waits for this member no
// longer than for a session.
type coordinatedClient struct {
	sarama.Client
	coordination sarama.Client
	connections  *connections
}

// newCoordinatedClient gives the coordinator the read timeout of cfg for an answer to a join, and a fetch the one of
// all other requests beyond the broker's wait for records.
func newCoordinatedClient(brokers []string, cfg *sarama.Config, open *connections) (*coordinatedClient, error) {
	own := *cfg
	own.Net.Proxy.Enable, own.Net.Proxy.Dialer = true, open
	own.Metadata.RefreshFrequency = 0 // who coordinates is asked for when it is needed
	coordination, err := sarama.NewClient(brokers, &own)
	if err != nil {
		return nil, fmt.Errorf("connect for coordination: %w", err)
	}
	fetching := *cfg
	fetching.Net.ReadTimeout = cfg.Consumer.MaxWaitTime + open.patience
	reading, err := sarama.NewClient(brokers, &fetching)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", err), coordination.Close())
	}
	return &coordinatedClient{reading, coordination, open}, nil
}

// Coordinator implements [sarama.Client]. sarama asks for it after a failure, but would get the one that it knew.
func (c *coordinatedClient) Coordinator(group string) (*sarama.Broker, error) {
	if c.connections.failed.Swap(false) {
		if err := c.coordination.RefreshCoordinator(group); err != nil {
			c.connections.failed.Store(true)
			return nil, fmt.Errorf("look for the coordinator: %w", err)
		}
	}
	return c.coordination.Coordinator(group)
}

// RefreshCoordinator implements [sarama.Client].
func (c *coordinatedClient) RefreshCoordinator(group string) error {
	return c.coordination.RefreshCoordinator(group)
}

// Close implements [sarama.Client].
func (c *coordinatedClient) Close() error {
	return errors.Join(c.coordination.Close(), c.Client.Close())
}

// connections dials, and knows what is open. sarama waits for an answer as long as its connection lasts and its read
// timeout allows, which for joining is longer than a rebalance; to end earlier, a stop can only cut the connection.
type connections struct {
	dialer   net.Dialer
	patience time.Duration // for an answer, except to a join
	joining  atomic.Bool   // nothing but a join or what belongs to it is asked
	failed   atomic.Bool   // an answer did not come: perhaps another broker coordinates now

	mu   sync.Mutex
	open map[*connection]struct{}
}

func newConnections(cfg *sarama.Config, patience time.Duration) *connections {
	return &connections{
		dialer:   net.Dialer{Timeout: cfg.Net.DialTimeout, KeepAlive: cfg.Net.KeepAlive},
		patience: patience,
		open:     make(map[*connection]struct{}),
	}
}

type connection struct {
	net.Conn
	of *connections
}

// Dial is what sarama asks of a proxy.
func (c *connections) Dial(network, address string) (net.Conn, error) {
	conn, err := c.dialer.DialContext(context.Background(), network, address)
	if err != nil {
		return nil, err
	}
	opened := &connection{conn, c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[opened] = struct{}{}
	return opened, nil
}

// cut closes what is open. Requests under way fail, later ones have a new connection.
func (c *connections) cut() {
	c.mu.Lock()
	open := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	for _, conn := range open {
		_ = conn.Close()
	}
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// SetReadDeadline implements [net.Conn]. sarama calls it when it begins to wait for an answer.
func (c *connection) SetReadDeadline(t time.Time) error {
	if soon := time.Now().Add(c.of.patience); !c.of.joining.Load() && soon.Before(t) {
		t = soon
	}
	return c.Conn.SetReadDeadline(t)
}

// Read implements [net.Conn].
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		c.of.failed.Store(true)
	}
	return n, err
}
