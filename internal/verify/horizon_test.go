package verify_test

import (
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/verify"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/testkit"
)

func settled(t *testing.T) *system {
	t.Helper()
	s := newSystem(t)
	s.add(t, keysOf(5)...)
	s.add(t, keysOf(3)...)
	s.publish(t)
	s.consume(t)
	return s
}

func TestNothingIsWrong(t *testing.T) {
	t.Parallel()
	s := settled(t)
	verdict := s.verify(t)
	requireWhole(t, verdict)
	require.Zero(t, s.pauses)
	require.Equal(t, []verify.Produced{{Topic: s.topic, Published: 8, Records: 8}}, verdict.Produced)
	require.Equal(t, verify.Consumed{Consumer: consumer, Topic: s.topic, Handled: 8}, verdict.Consumed[0])

	s.add(t, "key-0")
	require.EqualValues(t, 1, s.verify(t).Produced[0].Waiting)
	s.publish(t)
	verdict = s.verify(t)
	requireWhole(t, verdict)
	require.EqualValues(t, 1, verdict.Consumed[0].Pending)
}

func TestWhatIsSentAgainIsNoFinding(t *testing.T) {
	t.Parallel()
	s := settled(t)
	publisher := kafkatest.NewPublisher(t, s.brokers)
	sent, err := relay.Republish(t.Context(), s.pool, publisher, relay.Selection{From: 2})
	require.NoError(t, err)
	require.NoError(t, publisher.Close())
	s.consume(t)
	verdict := s.verify(t)
	requireWhole(t, verdict)
	require.EqualValues(t, sent, verdict.Produced[0].Again)
	require.EqualValues(t, sent, verdict.Consumed[0].Again)
}

func TestCopiesAreCompared(t *testing.T) {
	t.Parallel()
	s := settled(t)
	copies := "dlq." + s.topic
	require.NoError(t, kafka.EnsureTopics(t.Context(), kafka.Config{Brokers: s.brokers},
		kafka.Topic{Name: copies, Partitions: 2, ReplicationFactor: 1, Retention: time.Hour}))
	add := func(eventType, value string) {
		require.NoError(t, pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			_, err := s.outbox.Add(t.Context(), tx, event.Event{
				Type: eventType, Topic: copies, Key: "k", Data: []byte(value),
			})
			return err
		}))
	}
	add("record", "earlier")
	s.publish(t)
	s.exec(t, `delete from outbox where topic = $1`, copies)
	add(deadletter.CopyType, "one")
	s.publish(t)
	cfg := s.config()
	cfg.Topics = append(cfg.Topics, copies)
	verdict := run(t, cfg)
	requireWhole(t, verdict)
	require.EqualValues(t, 1, verdict.Produced[1].Published)

	s.exec(t, `update outbox set payload = 'two' where topic = $1`, copies)
	require.Equal(t, []verify.Rule{"V1"}, rulesOf(run(t, cfg)))
}

func TestWhatIsNotPublishedIsNotLost(t *testing.T) {
	t.Parallel()
	s := settled(t)
	for i, id := range s.add(t, "held", "discarded") {
		table := []string{
			"outbox_held (topic, key, position) select topic, key, position",
			"outbox_discarded (position) select position",
		}[i]
		s.exec(t, `insert into `+table+` from outbox where event_id = $1`, id)
	}
	s.lay(t, event.Event{
		ID: "of another", Source: "/other", Type: "x", Key: "key-0", Time: time.Now(), Data: []byte("{}"),
	}, -1)
	s.exec(t, `update outbox_cursor set done = pg_current_snapshot()`) // the cursor has passed them
	verdict := s.verify(t)
	requireWhole(t, verdict)
	require.Equal(t, verify.Produced{
		Topic: s.topic, Published: 8, Records: 8, Foreign: 1, Held: 1, Discarded: 1,
	}, verdict.Produced[0])
}

func reasonOf(v *verify.Verdict, why verify.Reason) (n int64) {
	for _, u := range v.Unverifiable {
		if u.Reason == why {
			n += u.Events
		}
	}
	return n
}

func (s *system) admin(t *testing.T) sarama.ClusterAdmin {
	t.Helper()
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	admin, err := sarama.NewClusterAdmin(s.brokers, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	return admin
}

func (s *system) deleteRecords(t *testing.T) {
	t.Helper()
	gone := map[int32]int64{}
	for p, records := range s.records(t) {
		gone[int32(p)] = int64(len(records))
	}
	require.NoError(t, s.admin(t).DeleteRecords(s.topic, gone))
}

func TestWhatTheTopicForgotIsNotVerifiable(t *testing.T) {
	t.Parallel()
	s := settled(t)
	s.deleteRecords(t)
	verdict := s.verify(t)
	requireClean(t, verdict)
	require.False(t, verdict.Whole())
	require.EqualValues(t, 8+8+8+5, reasonOf(verdict, verify.TopicForgot),
		"rows of the outbox and of two inboxes, and versions of keys")

	s.add(t, "key-0")
	s.publish(t)
	s.consume(t)
	requireClean(t, s.verify(t))
}

func TestWhatTheOutboxDroppedIsNotVerifiable(t *testing.T) {
	t.Parallel()
	s := newSystem(t, outboxtest.SmallPartitions) // of eight rows
	s.add(t, keysOf(8)...)
	s.add(t, keysOf(5)...)
	s.publish(t)
	s.consume(t)
	s.exec(t, `insert into outbox_partition (upper_bound) values (9)`)
	s.exec(t, `select outbox_drop_partition('outbox_1')`)
	verdict := s.verify(t)
	requireClean(t, verdict)
	require.EqualValues(t, 8, reasonOf(verdict, verify.OutboxForgot))

	e := s.event(t, s.add(t, "key-1")[0])
	s.publish(t)
	e.ID, e.Version = uuid.Must(uuid.NewV7()).String(), 7
	s.lay(t, e, -1)
	verdict = s.verify(t)
	requireClean(t, verdict)
	require.EqualValues(t, 9, reasonOf(verdict, verify.OutboxForgot), "its row may be among the dropped ones")
	s.exec(t, `update outbox set event_id = gen_random_uuid(), occurred_at = occurred_at - interval '1 day'
		where position = 9`)
	require.Contains(t, kindsOf(s.verify(t)), verify.Ghost, "the outbox has rows of that time")
}

// A parked key keeps the first table partition for a while. The first row of the third one has a business time of an
// hour ago, and no time in its id.
func TestRowsAreDroppedByTheirPositions(t *testing.T) {
	t.Parallel()
	s := newSystem(t, outboxtest.SmallPartitions) // of eight rows
	s.add(t, keysOf(8)...)
	s.add(t, keysOf(8)...)
	outboxtest.Commit(t, s.outbox, s.pool, event.Event{
		ID: uuid.NewString(), Type: inboxtest.Type, Topic: s.topic, Key: "key-9", Time: time.Now().Add(-time.Hour),
		Data: []byte(`{"value":"key-9"}`),
	})
	s.add(t, keysOf(3)...)
	s.publish(t)
	s.consume(t)
	requireWhole(t, s.verify(t))
	s.exec(t, `insert into outbox_partition (upper_bound) values (9), (17)`)
	for i, dropped := range []string{"outbox_9", "outbox_1"} {
		s.exec(t, `select outbox_drop_partition($1)`, dropped)
		verdict := s.verify(t)
		requireClean(t, verdict)
		require.EqualValues(t, 8*(i+1), reasonOf(verdict, verify.OutboxForgot))
	}
	s.exec(t, `delete from outbox where position = 17`)
	require.Equal(t, []verify.Rule{"V2"}, rulesOf(s.verify(t)))
}

// All records of a topic-partition have expired that each key had when the topic had one.
func TestAnIdlePartitionHidesNoLossOfOthers(t *testing.T) {
	t.Parallel()
	s := settled(t)
	require.NotEmpty(t, s.records(t)[0])
	busy := keysOf(5)[slices.IndexFunc(keysOf(5), func(key string) bool { return s.place(t, key) != 0 })]
	s.tamper = func([]*message.Message) []*message.Message { return nil }
	s.add(t, busy)
	s.publish(t)
	require.NoError(t, s.admin(t).DeleteRecords(s.topic, map[int32]int64{0: int64(len(s.records(t)[0]))}))
	for _, since := range []time.Time{{}, time.Now().Add(-time.Minute)} {
		cfg := s.config()
		cfg.Since = since
		verdict := run(t, cfg)
		require.Equal(t, []verify.Rule{"V1"}, rulesOf(verdict))
		require.Equal(t, busy, verdict.Findings[0].Key)
	}

	s.exec(t, `update outbox set event_id = gen_random_uuid(), occurred_at = occurred_at - interval '1 day'
		where key = $1 and version > 1`, busy)
	require.NotContains(t, rulesOf(s.verify(t)), verify.Rule("V1"), "the topic may have had one partition")
}

// Retention may have removed the record with the version that a key has reached.
func TestAVersionThatTheTopicForgotIsNotVerifiable(t *testing.T) {
	t.Parallel()
	s := settled(t)
	s.exec(t, `update inbox_key set version = version + 5 where consumer = $1 and key = 'key-0'`, consumer)
	require.Equal(t, []verify.Rule{"V6"}, rulesOf(s.verify(t)))
	s.exec(t, `delete from inbox where consumer = $1`, unordered)
	place := s.place(t, "key-0")
	require.NoError(t, s.admin(t).DeleteRecords(s.topic, map[int32]int64{place: 1}))
	verdict := s.verify(t)
	require.NotContains(t, rulesOf(verdict), verify.Rule("V6"))
	var ofVersions int64
	for _, u := range verdict.Unverifiable {
		if u.Subject == consumer && u.Reason == verify.TopicForgot {
			ofVersions = u.Events
		}
	}
	require.EqualValues(t, 2, ofVersions, "the row of the record, and the version")
}

// addPartitions doubles them.
func (s *system) addPartitions(t *testing.T) {
	t.Helper()
	require.NoError(t, s.admin(t).CreatePartitions(s.topic, 2*partitions, nil, false))
	testkit.Until(t, func() bool {
		ends, err := s.ends(t.Context())
		return err == nil && len(ends) == 2*partitions
	})
}

func TestATopicWithMorePartitions(t *testing.T) {
	t.Parallel()
	s := settled(t)
	s.addPartitions(t)
	moved := 0
	for _, key := range append(keysOf(5), keysOf(3)...) {
		if s.placeOf(t, key, 2*partitions) != s.place(t, key) {
			moved++
		}
	}
	require.Positive(t, moved)
	s.add(t, keysOf(5)...)
	s.publish(t)
	verdict := s.verify(t)
	requireClean(t, verdict)
	require.EqualValues(t, moved, reasonOf(verdict, verify.FewerPartitions))
}

func TestWhatTheInboxForgotIsNotVerifiable(t *testing.T) {
	t.Parallel()
	s := settled(t)
	s.exec(t, `delete from inbox where consumer = $1`, unordered)
	s.exec(t, `update inbox_horizon set remembers_from = clock_timestamp() + interval '1 hour'`)
	verdict := s.verify(t)
	requireClean(t, verdict)
	require.EqualValues(t, 8, reasonOf(verdict, verify.InboxForgot))
}

func TestATopicThatWasMadeAnew(t *testing.T) {
	t.Parallel()
	s := settled(t)
	admin := s.admin(t)
	require.NoError(t, admin.DeleteTopic(s.topic))
	s.awaitEmpty(t, 0)
	verdict := s.verify(t)
	require.EqualValues(t, 8+8+5, reasonOf(verdict, verify.TopicForgot),
		"rows of the inboxes and versions of keys, of a topic that is gone")

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		detail := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}
		require.NoError(c, admin.CreateTopic(s.topic, detail, false))
	}, kafkatest.Patience, 10*time.Millisecond)
	s.awaitEmpty(t, partitions)
	verdict = s.verify(t)
	require.Len(t, verdict.Findings, 8, "the outbox has them as published, so they can be published again")
	require.Subset(t, []verify.Rule{"V1"}, rulesOf(verdict))
	require.EqualValues(t, 8+8+5, reasonOf(verdict, verify.TopicForgot), "rows of the inboxes, and versions of keys")
}

func (s *system) awaitEmpty(t *testing.T, partitions int) {
	t.Helper()
	testkit.Until(t, func() bool {
		ends, err := s.ends(t.Context())
		return err == nil && slices.Equal(ends, make([]int64, partitions))
	})
}

func TestTransactionsOfOthers(t *testing.T) {
	t.Parallel()
	s := settled(t)
	cfg := kafka.Config{Brokers: s.brokers}.WithDefaults().Producer()
	cfg.Producer.Return.Successes = true
	cfg.Producer.Transaction.ID = s.topic
	producer, err := sarama.NewSyncProducer(s.brokers, cfg)
	require.NoError(t, err)
	lay := func() {
		require.NoError(t, producer.BeginTxn())
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: s.topic, Key: sarama.StringEncoder("key-0")})
		require.NoError(t, err)
	}
	lay()
	require.NoError(t, producer.AbortTxn())
	lay()
	s.add(t, "key-0")
	s.publish(t)
	verdict := s.verify(t)
	requireClean(t, verdict)
	require.EqualValues(t, 1, reasonOf(verdict, verify.Open))
	require.NoError(t, producer.CommitTxn())
	require.NoError(t, producer.Close())
	s.consume(t)
	requireWhole(t, s.verify(t))
}

func TestSince(t *testing.T) {
	t.Parallel()
	s := settled(t)
	s.exec(t, `update outbox set event_id = gen_random_uuid(), occurred_at = occurred_at - interval '2 days'
		where position < 4`)
	require.False(t, s.verify(t).Clean())
	cfg := s.config()
	cfg.Since = time.Now().Add(-time.Hour)
	verdict := run(t, cfg)
	require.Equal(t, 5, int(verdict.Produced[0].Published))
	require.NotContains(t, kindsOf(verdict), verify.Lost)
}

func TestATopicThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	s := settled(t)
	_, err := verify.Run(t.Context(), s.config().AtMost(7))
	require.ErrorContains(t, err, "8 records are more than the 7 that fit: leave out older events (--since)")
	requireWhole(t, run(t, s.config().AtMost(8)))
	s.exec(t, `delete from outbox where position = 8`)
	require.Equal(t, []verify.Kind{verify.Ghost}, kindsOf(run(t, s.config().AtMost(8))), "looked at again")
}

// A topic-partition without a young record, and one whose young records lie behind old ones, are judged by their whole
// logs.
func TestSinceFindsWhatTheWindowCuts(t *testing.T) {
	t.Parallel()
	s := settled(t)
	isQuiet := func(key string) bool { return s.place(t, key) != s.place(t, "key-0") }
	quiet := keysOf(5)[slices.IndexFunc(keysOf(5), isQuiet)]
	since := time.Now().Add(time.Hour + time.Millisecond)
	<-time.After(2 * time.Millisecond) // records have whole milliseconds
	s.tamper = func(msgs []*message.Message) []*message.Message {
		return []*message.Message{msgs[1], msgs[0]} // the third, of the quiet one, is lost
	}
	var events []event.Event
	for _, key := range []string{"key-0", "key-0", quiet} {
		events = append(events, event.Event{
			Type: inboxtest.Type, Topic: s.topic, Key: key, Time: since.Add(time.Hour), Data: []byte(`{"value":"x"}`),
		})
	}
	outboxtest.Commit(t, s.outbox, s.pool, events...)
	s.publish(t)
	cfg := s.config()
	cfg.Since = since
	verdict := run(t, cfg)
	require.ElementsMatch(t, []verify.Kind{verify.Lost, verify.Reordered}, kindsOf(verdict))
	require.True(t, verdict.Whole())
}

// The event's business time is before the first record that the topic has.
func TestALossIsJudgedByTheTimeInTheID(t *testing.T) {
	t.Parallel()
	s := settled(t)
	byProducer := map[string]*string{"message.timestamp.type": new("CreateTime")} // the log begins an hour ago
	require.NoError(t, s.admin(t).AlterConfig(sarama.TopicResource, s.topic, byProducer, false))
	s.deleteRecords(t)
	for p := range int32(partitions) {
		s.lay(t, event.Event{
			ID: "of another", Source: "/other", Type: "x", Key: "x", Time: time.Now().Add(-time.Hour), Data: []byte("{}"),
		}, p)
	}
	s.exec(t, `delete from outbox`)
	s.tamper = func([]*message.Message) []*message.Message { return nil }
	outboxtest.Commit(t, s.outbox, s.pool, event.Event{
		Type: inboxtest.Type, Topic: s.topic, Key: "new", Time: time.Now().Add(-48 * time.Hour), Data: []byte("{}"),
	})
	s.publish(t)
	require.Equal(t, []verify.Kind{verify.Lost}, kindsOf(s.verify(t)))
}

func kindsOf(v *verify.Verdict) (kinds []verify.Kind) {
	for _, f := range v.Findings {
		kinds = append(kinds, f.Kind)
	}
	return kinds
}

func TestWhatHealsMeanwhileIsNoFinding(t *testing.T) {
	t.Parallel()
	s := settled(t)
	s.exec(t, `update inbox_key set parked_from = 7 where consumer = $1`, consumer)
	s.between = func() { s.exec(t, `update inbox_key set parked_from = null`) }
	requireWhole(t, s.verify(t))
	require.Equal(t, 1, s.pauses)
}

// A suspect that cannot be verified any more is not right.
func TestASuspectThatIsForgottenBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	s := settled(t)
	s.tamper = func([]*message.Message) []*message.Message { return nil }
	s.add(t, "key-0")
	s.publish(t)
	s.between = func() { s.deleteRecords(t) }
	verdict := s.verify(t)
	requireClean(t, verdict)
	want := []verify.Unverifiable{{Subject: s.topic, Reason: verify.TopicForgot, Events: 1}}
	require.Equal(t, want, verdict.Unverifiable)
}
