package verify_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/verify"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

const (
	source     = "/test"
	consumer   = "test" // keeps the order of the versions
	unordered  = "test.unordered"
	partitions = 3
)

type system struct {
	pool    *pgxpool.Pool
	brokers []string
	topic   string
	outbox  *outbox.Outbox
	inboxes map[string]*inbox.Inbox
	mux     *inbox.Mux

	tamper  func([]*message.Message) []*message.Message // with what goes to the broker
	handled map[string]map[int32]int64                  // offsets by consumer
	pauses  int
	between func() // called in each pause
	checks  []verify.Check
}

func newSystem(t *testing.T, more ...migrations.Set) *system {
	t.Helper()
	brokers := kafkatest.Brokers(t)
	s := &system{
		pool:    pgtest.New(t, append([]migrations.Set{migrations.Outbox, migrations.Inbox, migrations.Audit}, more...)...),
		brokers: brokers, topic: kafkatest.Topic(t, brokers, partitions),
		inboxes: map[string]*inbox.Inbox{}, mux: inbox.NewMux(), handled: map[string]map[int32]int64{},
		between: func() {},
	}
	var err error
	s.outbox, err = outbox.New(outbox.Config{Source: source})
	require.NoError(t, err)
	inbox.Handle(s.mux, inboxtest.Event, func(context.Context, pgx.Tx, event.Event, inboxtest.Data) error {
		return nil
	})
	for _, name := range []string{consumer, unordered} {
		cfg := inboxtest.On(s.pool).Config
		cfg.Consumer, cfg.Group = name, s.topic+"."+name
		cfg.Accepts = func(eventType string) bool { return s.mux.Accepts(eventType) }
		if name == consumer {
			cfg.Order = inbox.Strict
		}
		s.inboxes[name], err = inbox.New(cfg)
		require.NoError(t, err)
	}
	return s
}

func (s *system) add(t *testing.T, keys ...string) (ids []string) {
	t.Helper()
	var events []event.Event
	for _, key := range keys {
		events = append(events, event.Event{
			Type: inboxtest.Type, Topic: s.topic, Key: key, Data: []byte(`{"value":"` + key + `"}`),
		})
	}
	for _, added := range outboxtest.Commit(t, s.outbox, s.pool, events...) {
		ids = append(ids, added.ID)
	}
	return ids
}

func (s *system) publish(t *testing.T) {
	t.Helper()
	var page messages
	r, err := relay.New(relay.Config{
		Connect: outboxtest.Dial(t, s.pool), Publisher: &page, PollMax: 10 * time.Millisecond,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	testkit.Until(t, func() bool {
		status, err := relay.ReadStatus(t.Context(), s.pool)
		return err == nil && status.Waiting == 0
	}, "published")
	cancel()
	require.NoError(t, <-ended)

	publisher := kafkatest.NewPublisher(t, s.brokers)
	for topic, msgs := range page.ofTopics {
		if s.tamper != nil && topic == s.topic {
			msgs = s.tamper(msgs)
		}
		for _, m := range msgs { // one at a time, so that the order is the test's
			require.NoError(t, publisher.Publish(topic, m))
		}
	}
	require.NoError(t, publisher.Close())
}

// messages takes those of a relay.
type messages struct {
	mu       sync.Mutex
	ofTopics map[string][]*message.Message
}

func (m *messages) Publish(topic string, msgs ...*message.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ofTopics == nil {
		m.ofTopics = map[string][]*message.Message{}
	}
	m.ofTopics[topic] = append(m.ofTopics[topic], msgs...)
	return nil
}

func (*messages) Close() error { return nil }

// records returns those of each topic-partition.
func (s *system) records(t *testing.T) [][]*message.Message {
	t.Helper()
	from, err := s.offsets(t.Context(), sarama.OffsetOldest)
	require.NoError(t, err)
	to, err := s.ends(t.Context())
	require.NoError(t, err)
	all := make([][]*message.Message, partitions)
	for p := range all {
		all[p], err = s.scan(t.Context(), int32(p), from[p], to[p])
		require.NoError(t, err)
	}
	return all
}

func (s *system) ask(ctx context.Context, question func(c kafka.Cluster) error) error {
	return kafka.Ask(ctx, kafka.Config{Brokers: s.brokers}, "ask for the log", question)
}

func (s *system) ends(ctx context.Context) ([]int64, error) {
	return s.offsets(ctx, sarama.OffsetNewest)
}

func (s *system) offsets(ctx context.Context, which int64) (offsets []int64, err error) {
	err = s.ask(ctx, func(c kafka.Cluster) error {
		all, err := c.Partitions(s.topic)
		if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			return nil
		}
		if err == nil {
			offsets, err = c.Offsets(s.topic, all, which)
		}
		return err
	})
	return offsets, err
}

func (s *system) scan(ctx context.Context, partition int32, from, to int64) (all []*message.Message, err error) {
	err = s.ask(ctx, func(c kafka.Cluster) error {
		_, err := c.Scan(s.topic, partition, from, to, func(m *message.Message) error {
			all = append(all, m)
			return nil
		})
		return err
	})
	return all, err
}

func (s *system) consume(t *testing.T) {
	t.Helper()
	records := s.records(t)
	for name, in := range s.inboxes {
		if s.handled[name] == nil {
			s.handled[name] = map[int32]int64{}
		}
		handle := in.Middleware(s.mux.HandleMessage)
		for _, m := range slices.Concat(records...) {
			origin, _ := event.OriginFrom(m.Context())
			if next := s.handled[name]; origin.Offset >= next[origin.Partition] {
				next[origin.Partition] = origin.Offset + 1
				_, err := handle(m)
				require.NoError(t, err)
			}
		}
		require.NoError(t, s.commitOffsets(name, s.handled[name]))
	}
}

// commitOffsets is not a member of the group, like an operator's tool.
func (s *system) commitOffsets(name string, offsets map[int32]int64) error {
	client, err := sarama.NewClient(s.brokers, kafka.Config{Brokers: s.brokers}.WithDefaults().Producer())
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	group := s.topic + "." + name
	coordinator, err := client.Coordinator(group)
	if err != nil {
		return err
	}
	request := &sarama.OffsetCommitRequest{
		Version: 2, ConsumerGroup: group, ConsumerGroupGeneration: sarama.GroupGenerationUndefined, RetentionTime: -1,
	}
	for p, next := range offsets {
		request.AddBlock(s.topic, p, next, 0, "")
	}
	answer, err := coordinator.CommitOffset(request)
	if err != nil {
		return err
	}
	for _, of := range answer.Errors[s.topic] {
		if of != sarama.ErrNoError {
			return of
		}
	}
	return nil
}

func (s *system) config() verify.Config {
	cfg := verify.Config{
		Service: verify.Service{
			Database: pgtest.DSN(s.pool), Source: source, Topics: []string{s.topic}, Checks: s.checks,
		},
		Kafka: kafka.Config{Brokers: s.brokers},
		Suspected: func(int) {
			s.pauses++
			s.between()
		},
	}
	for _, name := range []string{consumer, unordered} {
		cfg.Consumers = append(cfg.Consumers, verify.Consumer{
			Name: name, Group: s.topic + "." + name, Topic: s.topic, Versioned: name == consumer,
			Types: []string{inboxtest.Type},
		})
	}
	return cfg
}

func (s *system) verify(t *testing.T) *verify.Verdict {
	t.Helper()
	return run(t, s.config())
}

func run(t *testing.T, cfg verify.Config) *verify.Verdict {
	t.Helper()
	verdict, err := verify.Run(t.Context(), cfg)
	require.NoError(t, err)
	return verdict
}

func (s *system) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	tag, err := s.pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
	require.NotZero(t, tag.RowsAffected(), "nothing was changed: %s", sql)
}

// A negative partition selects the key's own. The record has the event's time.
func (s *system) lay(t *testing.T, e event.Event, partition int32) {
	t.Helper()
	record, err := kafka.Marshaler{}.Marshal(s.topic, e.Message())
	require.NoError(t, err)
	record.Key, record.Timestamp = sarama.StringEncoder(e.Key), e.Time
	cfg := kafka.Config{Brokers: s.brokers}.WithDefaults().Producer()
	cfg.Producer.Return.Successes = true
	if partition >= 0 {
		cfg.Producer.Partitioner = sarama.NewManualPartitioner
		record.Partition = partition
	}
	producer, err := sarama.NewSyncProducer(s.brokers, cfg)
	require.NoError(t, err)
	_, _, err = producer.SendMessage(record)
	require.NoError(t, err)
	require.NoError(t, producer.Close())
}

func (s *system) place(t *testing.T, key string) int32 { return s.placeOf(t, key, partitions) }

func (s *system) placeOf(t *testing.T, key string, partitions int32) int32 {
	t.Helper()
	keyed := &sarama.ProducerMessage{Key: sarama.StringEncoder(key)}
	p, err := sarama.NewMurmur2Partitioner("").Partition(keyed, partitions)
	require.NoError(t, err)
	return p
}

// otherPlace is never the key's, whatever number of partitions the topic had.
func (s *system) otherPlace(t *testing.T, key string) int32 {
	t.Helper()
	for other := int32(partitions) - 1; other > 0; other-- {
		if s.place(t, key) != other && (other >= 2 || s.placeOf(t, key, 2) != other) {
			return other
		}
	}
	require.Fail(t, "each partition may be the key's", key)
	return 0
}

func (s *system) event(t *testing.T, id string) event.Event {
	t.Helper()
	e := event.Event{ID: id, Source: source, Type: inboxtest.Type, Topic: s.topic}
	require.NoError(t, s.pool.QueryRow(t.Context(), `select key, version, occurred_at, headers, payload
		from outbox where event_id = $1`, id).Scan(&e.Key, &e.Version, &e.Time, &e.Extensions, &e.Data))
	return e
}

func keysOf(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "key-" + strconv.Itoa(i)
	}
	return keys
}

func requireClean(t *testing.T, v *verify.Verdict) {
	t.Helper()
	require.Empty(t, v.Findings)
}

func requireWhole(t *testing.T, v *verify.Verdict) {
	t.Helper()
	requireClean(t, v)
	require.Empty(t, v.Unverifiable)
}

func each(id *string, change func(*message.Message) []*message.Message) func([]*message.Message) []*message.Message {
	return func(msgs []*message.Message) (out []*message.Message) {
		for _, m := range msgs {
			if m.UUID == *id {
				out = append(out, change(m)...)
				continue
			}
			out = append(out, m)
		}
		return out
	}
}
