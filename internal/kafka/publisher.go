package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
)

// Publisher is watermill-kafka's Publisher, called for many keys at a time, so that sarama makes batches. It connects
// on first use and is safe for concurrent use.
//
// Guaranteed: a key's messages are on the log in the order of the call. After a failure the later ones of its key are
// not sent. An acknowledged message is on all in-sync replicas. A message that the broker refuses fails alone.
//
// Not guaranteed: that a message is written once.
type Publisher struct {
	cfg     Config
	log     *slog.Logger
	closing context.Context //nolint:containedctx // of the publisher: Close ends it
	stop    context.CancelFunc
	repeats atomic.Int64 // how often sarama has sent a batch again

	connecting sync.Mutex
	conn       *connection // nil: none
}

const (
	maxKeys = 500
	// openingKeys are sent one after the other first, until one fails. Of two at a time one may use a connection that
	// sarama is opening: it fails, and is sent again.
	openingKeys = 16
	// reconnectAfter is the least age of a replaced connection.
	reconnectAfter = time.Second
)

// NewPublisher checks the configuration. It does not connect.
func NewPublisher(cfg Config, log *slog.Logger) (*Publisher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure publisher: %w", err)
	}
	p := &Publisher{cfg: cfg.WithDefaults(), log: cmp.Or(log, slog.New(slog.DiscardHandler))}
	p.closing, p.stop = context.WithCancel(context.Background())
	return p, nil
}

// Publish returns nil when every message is acknowledged, else a [*PublishError], within PublishTimeout. The caller
// must not change the messages before that, nor after an unknown outcome.
func (p *Publisher) Publish(topic string, msgs ...*message.Message) error {
	return p.PublishContext(context.Background(), topic, msgs...)
}

// PublishContext is [Publisher.Publish] that also returns when ctx ends. The error of an unsent message, or of one
// whose answer is only slow, has a method Unfinished that returns true.
func (p *Publisher) PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error {
	_, err := p.PublishAcked(ctx, topic, msgs...)
	return err
}

// PublishAcked is [Publisher.PublishContext] that also puts each acknowledged record's place into its message's
// context, as an [event.Origin]. repeated reports that a record may be on the log twice.
func (p *Publisher) PublishAcked(
	ctx context.Context, topic string, msgs ...*message.Message,
) (repeated bool, err error) {
	if len(msgs) == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.PublishTimeout, ErrTimeout)
	defer cancel()
	c := &call{
		topic: topic, msgs: msgs, copies: make([]*message.Message, len(msgs)), places: make([]event.Origin, len(msgs)),
		results: slices.Repeat([]error{errWaiting}, len(msgs)),
	}
	for i, msg := range msgs {
		c.copies[i] = &message.Message{UUID: msg.UUID, Metadata: msg.Metadata, Payload: msg.Payload}
		c.copies[i].SetContext(context.WithValue(msg.Context(), placeKey{}, &c.places[i]))
	}
	before := p.repeats.Load()
	sent := make(chan error, 1)
	go func() { sent <- p.send(ctx, c) }() // Watermill's Publish takes no context, so it may outlive this call
	select {
	case err = <-sent:
	case <-ctx.Done():
	}
	repeated = p.repeats.Load() != before
	return repeated, c.end(repeated, cmp.Or(err, context.Cause(ctx), ErrClosed))
}

// send returns an error if it sent nothing.
func (p *Publisher) send(ctx context.Context, c *call) error {
	conn, err := p.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", classify(err))
	}
	defer conn.inUse.RUnlock()
	isOpen := func() bool { return ctx.Err() == nil && p.closing.Err() == nil }
	keys := c.byKey()
	var sending errgroup.Group
	sending.SetLimit(maxKeys)
	refused, first := make([][]int, len(keys)), 0
	conn.opening.Do(func() {
		for taken := true; taken && first < min(len(keys), openingKeys); first++ {
			refused[first] = c.sendKey(conn, isOpen, keys[first], false)
			taken = c.isTaken(keys[first][0])
		}
	})
	for n, indexes := range keys[first:] {
		sending.Go(func() error {
			refused[first+n] = c.sendKey(conn, isOpen, indexes, false)
			return nil
		})
	}
	_ = sending.Wait()
	for _, indexes := range refused {
		c.sendKey(conn, isOpen, indexes, true)
	}
	conn.tookNothing.Store(!slices.Contains(c.results, nil))
	return nil
}

type connection struct {
	*wkafka.Publisher
	made        time.Time
	inUse       sync.RWMutex // a call reads; closing writes
	opening     sync.Once    // of the connections to the brokers
	tookNothing atomic.Bool  // in the last call
}

// connect returns the connection for one call, which ends with inUse.RUnlock. It replaces an idle one whose last call
// failed, since sarama would wait ten seconds. Late batches of the old one must not follow newer ones.
func (p *Publisher) connect(ctx context.Context) (*connection, error) {
	p.connecting.Lock()
	defer p.connecting.Unlock()
	switch {
	case p.closing.Err() != nil:
		return nil, ErrClosed
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	old := p.conn
	if old != nil && old.tookNothing.Load() && time.Since(old.made) > reconnectAfter && old.inUse.TryLock() {
		p.conn = nil
		if err := old.Close(); err != nil {
			p.log.Debug("close connection", "error", err)
		}
	}
	if p.conn == nil {
		conn, err := p.dial()
		if err != nil {
			return nil, err
		}
		p.conn = conn
	}
	p.conn.inUse.RLock()
	return p.conn, nil
}

func (p *Publisher) dial() (*connection, error) {
	if err := p.askForProducerID(); err != nil {
		return nil, err
	}
	conn := &connection{made: time.Now()}
	settings := p.cfg.Producer()
	pause := settings.Producer.Retry.BackoffFunc
	settings.Producer.Retry.BackoffFunc = func(retries, limit int) time.Duration {
		p.repeats.Add(1)
		return pause(retries, limit)
	}
	var err error
	conn.Publisher, err = wkafka.NewPublisher(wkafka.PublisherConfig{
		Brokers: p.cfg.Brokers, Marshaler: Marshaler{}, OverwriteSaramaConfig: settings, Tracer: placing{},
	}, watermill.NopLogger{}) // it logs only errors that it also returns
	return conn, err
}

// askForProducerID uses its own client: after a failure sarama leaves the producer's client open.
func (p *Publisher) askForProducerID() (err error) {
	connections, end := context.WithCancel(p.closing)
	defer end()
	client, err := newClient(connections, p.cfg, p.cfg.Producer())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	producer, err := sarama.NewAsyncProducerFromClient(client)
	if err != nil {
		return err
	}
	return producer.Close()
}

// Close waits for running sends and closes the connection. Other messages fail with [ErrClosed].
func (p *Publisher) Close() error {
	p.stop()
	p.connecting.Lock()
	defer p.connecting.Unlock()
	conn := p.conn
	if conn == nil {
		return nil
	}
	p.conn = nil
	conn.inUse.Lock()
	if err := conn.Close(); err != nil {
		return fmt.Errorf("close publisher: %w", err)
	}
	return nil
}

// call may be outlived by its goroutine.
type call struct {
	topic  string
	msgs   []*message.Message
	copies []*message.Message // to send: the next call may send the same messages
	places []event.Origin     // of the records of acknowledged messages

	mu       sync.Mutex
	results  []error // of each message; nil: acknowledged
	hasEnded bool
}

var errWaiting, errUnderWay = errors.New("its turn has not come"), errors.New("its answer has not come")

// byKey returns each key's indexes. A message without a key gets its own group.
func (c *call) byKey() (keys [][]int) {
	places := make(map[string]int)
	for i, msg := range c.msgs {
		key := msg.Metadata[event.KeyMetadata]
		place, known := places[key]
		if !known || key == "" {
			place = len(keys)
			places[key] = place
			keys = append(keys, nil)
		}
		keys[place] = append(keys[place], i)
	}
	return keys
}

// sendKey returns the messages to send once more, record by record: a broker refuses a batch because of one record.
func (c *call) sendKey(conn *connection, isOpen func() bool, indexes []int, areAlone bool) (refused []int) {
	for n, i := range indexes {
		if !isOpen() || !c.note(i, errUnderWay) {
			return nil
		}
		err := conn.Publish(c.topic, c.copies[i])
		switch {
		case err == nil:
			c.note(i, nil)
			continue
		case isOfOneRecord(err) && !areAlone:
			c.note(i, errWaiting)
			return indexes[n:]
		}
		c.note(i, explain(err))
		for _, behind := range indexes[n+1:] {
			c.note(behind, ErrNotSent)
		}
		return nil
	}
	return nil
}

func isOfOneRecord(err error) bool {
	return slices.ContainsFunc([]error{
		sarama.ErrMessageSizeTooLarge, sarama.ErrMessageSetSizeTooLarge, sarama.ErrInvalidRecord,
	}, func(answer error) bool { return errors.Is(err, answer) })
}

func explain(err error) error {
	_, isTooLarge := errors.AsType[sarama.ConfigurationError](err) // for a record that is too large
	if isTooLarge {
		return failure.AsPermanent(err)
	}
	return classify(err)
}

// note returns false after the call's end: a message sent then would be missing in its result.
func (c *call) note(i int, result error) (isInTime bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results[i] = result
	return !c.hasEnded
}

func (c *call) isTaken(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.results[i] == nil
}

// end returns the call's error. cause is the reason for unsent messages.
func (c *call) end(repeated bool, cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hasEnded = true
	failed := make(map[int]error)
	for i, err := range c.results {
		switch {
		case err == nil:
			c.msgs[i].SetContext(event.WithOrigin(c.msgs[i].Context(), c.places[i]))
			continue
		case errors.Is(err, errWaiting):
			err = &pendingError{cause: cause, unfinished: true}
		case errors.Is(err, errUnderWay): // sarama repeats what a silent broker does not answer
			err = &pendingError{cause: cause, sent: true, unfinished: !repeated}
		}
		failed[i] = err
	}
	if len(failed) == 0 {
		return nil
	}
	return &PublishError{Topic: c.topic, Failed: failed}
}

type pendingError struct {
	cause            error
	sent, unfinished bool
}

func (e *pendingError) Error() string {
	if e.sent {
		return "no answer yet: " + e.cause.Error()
	}
	return "its turn has not come: " + e.cause.Error()
}

func (e *pendingError) Unwrap() error { return e.cause }

// OutcomeUnknown reports whether the message may be on the log.
func (e *pendingError) OutcomeUnknown() bool { return e.sent }

// Unfinished reports that the message has not failed.
func (e *pendingError) Unfinished() bool { return e.unfinished }
