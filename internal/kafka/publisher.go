package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/rcrowley/go-metrics"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
)

// Publisher is watermill-kafka's Publisher, called for many keys at a time. That one sends a message and waits for its
// acknowledgement; sarama, below it, makes batches of what it is given together.
//
// Guaranteed: the messages of a key are on the log in the order of the call. When one fails, the later ones of its key
// are not sent, so what a call acknowledges of a key is a beginning, and sending the rest again completes it. An
// acknowledged message is on all in-sync replicas. A message that only the broker refuses fails alone.
//
// Not guaranteed: that a message is written once. One whose acknowledgement was lost is written again when it is sent
// again, and an append that comes late may lie behind newer records.
//
// It connects on first use, so a broker that is down does not keep a service from starting. It is safe for concurrent
// use.
type Publisher struct {
	cfg     Config
	log     *slog.Logger
	closing context.Context //nolint:containedctx // of the publisher: Close ends it
	stop    context.CancelFunc

	mu   sync.Mutex // held while connecting and disconnecting
	conn *connection
}

const (
	// maxKeys is how many keys of a call are sent at a time.
	maxKeys = 500
	// reconnectAfter is how long a connection is kept at least.
	reconnectAfter = time.Second
)

// NewPublisher checks the configuration and connects to nothing.
func NewPublisher(cfg Config, log *slog.Logger) (*Publisher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure publisher: %w", err)
	}
	p := &Publisher{cfg: cfg.WithDefaults(), log: cmp.Or(log, slog.New(slog.DiscardHandler))}
	p.closing, p.stop = context.WithCancel(context.Background())
	return p, nil
}

// Publish returns nil when every message is acknowledged, and a [*PublishError] that names the others when not. It
// returns within PublishTimeout. The messages must not be changed before that, nor after an unknown outcome.
func (p *Publisher) Publish(topic string, msgs ...*message.Message) error {
	return p.PublishContext(context.Background(), topic, msgs...)
}

// PublishContext is [Publisher.Publish] that also returns when ctx ends. A message whose turn had not come by then, or
// whose answer is only slow, has not failed: its error has a method Unfinished that returns true.
func (p *Publisher) PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error {
	return p.publish(ctx, newCall(topic, msgs))
}

func (p *Publisher) publish(ctx context.Context, c *call) error {
	if len(c.msgs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.PublishTimeout, ErrTimeout)
	defer cancel()
	sent := make(chan struct{})
	go func() { // Watermill's Publish takes no context, so it may go on behind the end of this call
		defer close(sent)
		p.send(ctx, c)
	}()
	select {
	case <-sent:
	case <-ctx.Done():
	}
	return c.result(cmp.Or(context.Cause(ctx), ErrClosed))
}

// send sends the messages of each key one after the other, and those of different keys side by side.
func (p *Publisher) send(ctx context.Context, c *call) {
	conn, err := p.connect()
	if err != nil {
		for i := range c.msgs {
			c.note(i, &pendingError{cause: fmt.Errorf("connect: %w", classify(err)), unfinished: true})
		}
		return
	}
	defer conn.inUse.RUnlock()
	c.use(conn)
	stopped, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.closing, func() { cancel(ErrClosed) })()

	keys := c.byKey()
	var sending sync.WaitGroup
	places := make(chan struct{}, maxKeys)
	for _, indexes := range keys {
		places <- struct{}{}
		sending.Go(func() {
			defer func() { <-places }()
			c.sendKey(stopped, conn, indexes)
		})
	}
	sending.Wait()
	// The broker refuses a batch for the sake of one record. Sent alone, the others are taken.
	for _, indexes := range keys {
		if n := c.firstFailed(indexes); n >= 0 && isOfOneRecord(c.results[indexes[n]]) {
			c.sendKey(stopped, conn, indexes[n:])
		}
	}
	conn.tookNothing.Store(!slices.Contains(c.results, nil))
}

// connection is a Publisher of watermill-kafka, with what is known about it.
type connection struct {
	*wkafka.Publisher
	made        time.Time
	inUse       sync.RWMutex  // a call reads; closing writes
	repeats     *atomic.Int64 // how often sarama has sent a batch again
	metrics     metrics.Registry
	tookNothing atomic.Bool // in the last call
}

// connect returns the connection for one call, which ends with inUse.RUnlock. One that took nothing in the last call is
// closed and made anew: sarama asks a broker that is back only after ten seconds. That waits until no call uses it, so
// that none of its batches comes behind those of the next one.
func (p *Publisher) connect() (*connection, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing.Err() != nil {
		return nil, ErrClosed
	}
	old := p.conn
	if old != nil && old.tookNothing.Load() && time.Since(old.made) > reconnectAfter && old.inUse.TryLock() {
		p.conn = nil
		if err := old.Close(); err != nil {
			p.log.Debug("close connection", "error", err)
		}
	}
	if p.conn == nil {
		var err error
		if p.conn, err = dial(p.cfg); err != nil {
			return nil, err
		}
	}
	p.conn.inUse.RLock()
	return p.conn, nil
}

// dial makes a connection.
func dial(cfg Config) (*connection, error) {
	settings, repeats := cfg.Producer(), new(atomic.Int64)
	if err := askForProducerID(cfg, settings); err != nil {
		return nil, err
	}
	pause := settings.Producer.Retry.BackoffFunc
	settings.Producer.Retry.BackoffFunc = func(retries, limit int) time.Duration {
		repeats.Add(1)
		return pause(retries, limit)
	}
	publisher, err := wkafka.NewPublisher(wkafka.PublisherConfig{
		Brokers: cfg.Brokers, Marshaler: Marshaler{}, OverwriteSaramaConfig: settings, Tracer: placing{},
	}, watermill.NopLogger{}) // what it logs as errors it returns
	if err != nil {
		return nil, err
	}
	return &connection{Publisher: publisher, made: time.Now(), repeats: repeats, metrics: settings.MetricRegistry}, nil
}

// askForProducerID asks for what each producer needs first. sarama leaves the client of a producer open that does not
// get it, and the client of this one is ours to close.
func askForProducerID(cfg Config, settings *sarama.Config) (err error) {
	client, err := sarama.NewClient(cfg.Brokers, settings)
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

// isThrottled says whether a broker has held this client back, which sarama tells in its metrics alone.
func (c *connection) isThrottled() (throttled bool) {
	c.metrics.Each(func(name string, metric any) {
		histogram, is := metric.(metrics.Histogram)
		throttled = throttled || is && strings.HasPrefix(name, "throttle-time-in-ms") && histogram.Count() > 0
	})
	return throttled
}

// Close lets what is under way come to its end, and closes the connections. Calls that wait return [ErrClosed]. Calling
// it again does nothing.
func (p *Publisher) Close() error {
	p.stop()
	p.mu.Lock() // no call begins behind this
	conn := p.conn
	p.conn = nil
	p.mu.Unlock()
	if conn == nil {
		return nil
	}
	conn.inUse.Lock()
	if err := conn.Close(); err != nil {
		return fmt.Errorf("close publisher: %w", err)
	}
	return nil
}

// call is one call of Publish. Its sending may outlive it.
type call struct {
	topic string
	msgs  []*message.Message

	places []event.Origin // of the records of acknowledged messages

	mu      sync.Mutex
	results []error // of each message; nil: acknowledged
	over    bool    // nothing more is sent
	conn    *connection
	repeats int64 // of the connection, when the call began
}

func newCall(topic string, msgs []*message.Message) *call {
	return &call{
		topic: topic, msgs: msgs, places: make([]event.Origin, len(msgs)),
		results: slices.Repeat([]error{errWaiting}, len(msgs)),
	}
}

// What results say of a message before its end.
var errWaiting, errUnderWay = errors.New("its turn has not come"), errors.New("its answer has not come")

// byKey returns the indexes of each key's messages. A message without a key stands alone.
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

// use notes over which connection the call goes.
func (c *call) use(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn, c.repeats = conn, conn.repeats.Load()
}

// sendKey sends a key's messages until one fails, or until ctx ends.
func (c *call) sendKey(ctx context.Context, conn *connection, indexes []int) {
	for n, i := range indexes {
		if !c.begin(ctx, i) {
			return
		}
		err := explain(conn.Publish(c.topic, c.msgs[i]))
		c.note(i, err)
		if err != nil {
			for _, behind := range indexes[n+1:] {
				c.note(behind, ErrNotSent)
			}
			return
		}
	}
}

// explain marks what no other attempt cures, for a relay that knows no Kafka.
func explain(err error) error {
	_, isTooLarge := errors.AsType[sarama.ConfigurationError](err) // what the client says of such a record
	if isTooLarge {
		return failure.AsPermanent(err)
	}
	return classify(err)
}

// begin notes that a message is sent; false when the call is over: its result would not tell of it.
func (c *call) begin(ctx context.Context, i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || ctx.Err() != nil {
		return false
	}
	c.results[i] = errUnderWay
	return true
}

// note writes down what came of a message.
func (c *call) note(i int, result error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results[i] = result
}

// firstFailed returns the first of these messages that was not taken, -1 for none.
func (c *call) firstFailed(indexes []int) int {
	return slices.IndexFunc(indexes, func(i int) bool { return c.results[i] != nil })
}

// isOfOneRecord says that a broker refused a batch for one of its records.
func isOfOneRecord(err error) bool {
	return slices.ContainsFunc([]error{
		sarama.ErrMessageSizeTooLarge, sarama.ErrMessageSetSizeTooLarge, sarama.ErrInvalidRecord,
	}, func(answer error) bool { return errors.Is(err, answer) })
}

// result ends the call. cause is why, if something is left to send.
func (c *call) result(cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	failed := make(map[int]error)
	for i, err := range c.results {
		switch {
		case err == nil:
			continue
		case errors.Is(err, errWaiting):
			err = &pendingError{cause: cause, unfinished: true}
		case errors.Is(err, errUnderWay):
			// A broker that is only slow makes sarama repeat nothing, unless it throttles this client for long.
			isSlow := c.conn.repeats.Load() == c.repeats || c.conn.isThrottled()
			err = &pendingError{cause: cause, sent: true, unfinished: isSlow}
		}
		failed[i] = err
	}
	if len(failed) == 0 {
		return nil
	}
	return &PublishError{Topic: c.topic, Failed: failed}
}

// pendingError is of a message that was neither acknowledged nor refused when its call ended.
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
