package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
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
// request is, and its successor asked, where an answer to a join may take as long as a rebalance.
type coordinatedClient struct {
	sarama.Client
	coordination sarama.Client
	connections  *connections
}

// newCoordinatedClient gives the coordinator the read timeout of cfg, and a fetch requestTimeout beyond
// the broker's wait for records.
func newCoordinatedClient(
	brokers []string, cfg *sarama.Config, requestTimeout time.Duration,
) (*coordinatedClient, error) {
	own := *cfg
	open := &connections{
		dialer: net.Dialer{Timeout: cfg.Net.DialTimeout, KeepAlive: cfg.Net.KeepAlive},
		open:   make(map[*connection]struct{}),
	}
	own.Net.Proxy.Enable, own.Net.Proxy.Dialer = true, open
	own.Metadata.RefreshFrequency = 0 // who coordinates is asked for when it is needed
	coordination, err := sarama.NewClient(brokers, &own)
	if err != nil {
		return nil, fmt.Errorf("connect for coordination: %w", err)
	}
	fetching := *cfg
	fetching.Net.ReadTimeout = cfg.Consumer.MaxWaitTime + requestTimeout
	reading, err := sarama.NewClient(brokers, &fetching)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", err), coordination.Close())
	}
	return &coordinatedClient{reading, coordination, open}, nil
}

// Coordinator implements [sarama.Client].
func (c *coordinatedClient) Coordinator(group string) (*sarama.Broker, error) {
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
// timeout allows, which for joining is longer than a rebalance; who wants to end earlier can only cut.
type connections struct {
	dialer net.Dialer

	mu   sync.Mutex
	open map[*connection]struct{}
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
