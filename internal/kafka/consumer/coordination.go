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

	"example.com/twinbox/internal/failure"
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

// cutWhenLeaving bounds how long a member that stops waits for its coordinator: with nothing left to hand over, for an
// answer at most [kafka.Config.RequestTimeout]. Else a rebalance, which waits for a member that hangs, would keep this
// one from ending until that one's session ends.
func (c *Consumer) cutWhenLeaving(connected context.Context, open *connections) {
	select {
	case <-c.ctx.Done():
	case <-connected.Done():
		return
	}
	for waits := false; failure.Sleep(connected, c.cfg.RequestTimeout/2) == nil; {
		waited := waits
		if waits = len(c.Standings()) == 0; waited && waits {
			open.cut()
		}
	}
}

// leave tells the group that a member with an instance id is gone. sarama leaves for members without one; with one it
// stays, and its partitions would have no owner until the session times out. The id is there to avoid that wait after
// a crash, and a shutdown should not cause it either. The member id goes along, so that a successor is not thrown out.
func (c *Consumer) leave() (err error) {
	if c.cfg.InstanceID == "" || c.session == nil || errors.Is(c.reason(), ErrFenced) {
		return nil
	}
	cfg := c.cfg.Client()
	cfg.Metadata.Retry.Max = 1
	client, err := sarama.NewClient(c.cfg.Brokers, cfg)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	coordinator, err := client.Coordinator(c.cfg.Group)
	if err != nil {
		return fmt.Errorf("find coordinator: %w", err)
	}
	answer, err := coordinator.LeaveGroup(&sarama.LeaveGroupRequest{
		Version: 3,
		GroupId: c.cfg.Group,
		Members: []sarama.MemberIdentity{{MemberId: c.session.MemberID(), GroupInstanceId: &c.cfg.InstanceID}},
	})
	if err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	for _, member := range append(answer.Members, sarama.MemberResponse{Err: answer.Err}) {
		if member.Err != sarama.ErrNoError && member.Err != sarama.ErrUnknownMemberId {
			return member.Err
		}
	}
	return nil
}

// watchedStrategy tells the member when it is about to join, and of its new assignment before sarama takes partitions
// away from it.
//
// sarama itself announces a revocation only by closing the claim's channel of records, behind the records that are
// buffered in it. A partition whose window is full does not read that channel, so it would learn of the loss when its
// handler is done, while the whole group waits.
type watchedStrategy struct {
	cooperative
	joining  func()
	assigned func(partitions map[string][]int32)
}

// cooperative is everything that sarama looks for in a cooperative strategy.
type cooperative interface {
	sarama.RebalanceProtocolBalanceStrategy
	sarama.SubscriptionUserDataBalanceStrategy
	sarama.OnAssignmentBalanceStrategy
}

// watch replaces the strategy of cfg by a watched one.
func watch(cfg *sarama.Config, joining func(), assigned func(map[string][]int32)) {
	strategies := cfg.Consumer.Group.Rebalance.GroupStrategies
	strategies[0] = watchedStrategy{strategies[0].(cooperative), joining, assigned}
}

// SubscriptionUserData implements [sarama.SubscriptionUserDataBalanceStrategy]: sarama asks for it to join with.
func (s watchedStrategy) SubscriptionUserData(topics []string) ([]byte, error) {
	s.joining()
	return s.cooperative.SubscriptionUserData(topics)
}

// OnAssignment implements [sarama.OnAssignmentBalanceStrategy].
func (s watchedStrategy) OnAssignment(assignment *sarama.ConsumerGroupMemberAssignment, generation int32) {
	s.cooperative.OnAssignment(assignment, generation)
	s.assigned(assignment.Topics)
}
