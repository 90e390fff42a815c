package verify_test

import (
	"slices"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/verify"
	"example.com/twinbox/test/outboxtest"
)

// The lost event is the middle one of its key's three.
func TestALostEventCountsAsARow(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.add(t, keysOf(5)...)
	id := s.add(t, "key-0", "key-0")[0]
	s.publish(t)
	s.consume(t)
	s.exec(t, `delete from outbox where event_id = $1`, id)
	require.Equal(t, verify.Rule("V2"), s.verify(t).Findings[0].Rule)

	s.lose(t, id)
	verdict := s.verify(t)
	requireWhole(t, verdict)
	require.EqualValues(t, 7, verdict.Produced[0].Published)

	s.exec(t, `update outbox_lost set payload = '{}'`)
	require.Equal(t, verify.Altered, s.verify(t).Findings[0].Kind)
}

// Rows of the same key before and after the lost event were dropped.
func TestALostEventOutlivesTheRowsAroundIt(t *testing.T) {
	t.Parallel()
	s := newSystem(t, outboxtest.SmallPartitions) // of eight rows
	ids := s.add(t, slices.Repeat([]string{"key-0"}, 10)...)
	s.publish(t)
	s.exec(t, `delete from outbox where event_id = $1`, ids[1])
	s.lose(t, ids[1])
	s.exec(t, `insert into outbox_partition (upper_bound) values (9)`)
	s.exec(t, `select outbox_drop_partition('outbox_1')`)
	verdict := s.verify(t)
	requireClean(t, verdict)
	require.EqualValues(t, 7, reasonOf(verdict, verify.OutboxForgot))
}

// Its caller repeats it with its id, and it gets the key's next version.
func TestALostEventThatIsAddedAgain(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	id := s.add(t, "key-0")[0]
	s.publish(t)
	s.lose(t, id)
	again := s.event(t, id)
	s.exec(t, `delete from outbox where event_id = $1`, id)
	again.Version = 0
	outboxtest.Commit(t, s.outbox, s.pool, again)
	s.publish(t)
	s.consume(t)
	verdict := s.verify(t)
	requireWhole(t, verdict)
	require.Equal(t, verify.Produced{Topic: s.topic, Published: 2, Records: 2}, verdict.Produced[0])

	s.exec(t, `update outbox set payload = '{}'`)
	require.Equal(t, []verify.Kind{verify.Altered}, kindsOf(s.verify(t)))
	s.exec(t, `update outbox set version = 1`)
	require.Contains(t, kindsOf(s.verify(t)), verify.Twice)
}

func TestSinceLeavesOutLostEvents(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	id := s.add(t, "key-0")[0]
	s.publish(t)
	s.exec(t, `delete from outbox`)
	s.lose(t, id)
	cfg := s.config()
	cfg.Since = time.Now().Add(2 * time.Hour)
	verdict := run(t, cfg)
	requireWhole(t, verdict)
	require.Zero(t, verdict.Produced[0].Published)
}

// lose stores the record's event as lost.
func (s *system) lose(t *testing.T, id string) {
	t.Helper()
	m := s.record(t, id)
	origin, _ := event.OriginFrom(m.Context())
	e, err := event.FromMessage(m)
	require.NoError(t, err)
	headers := map[string]string(m.Metadata)
	delete(headers, event.KeyMetadata)
	s.exec(t, `insert into outbox_lost
		(topic, partition, "offset", event_id, event_type, key, version, headers, payload, appended_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		s.topic, origin.Partition, origin.Offset, id, e.Type, e.Key, e.Version, headers, []byte(m.Payload), origin.Time)
}

// The log lost a record, had the key's next one, and then both again.
func TestALogThatWasSentAgainIsInOrder(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.add(t, "key-0", "key-0", "key-1")
	s.tamper = func(msgs []*message.Message) []*message.Message {
		return append([]*message.Message{msgs[1]}, msgs...)
	}
	s.publish(t)
	requireClean(t, s.verify(t))
}

func (s *system) record(t *testing.T, id string) (found *message.Message) {
	t.Helper()
	for _, m := range slices.Concat(s.records(t)...) {
		if m.UUID == id {
			found = m
		}
	}
	require.NotNil(t, found)
	return found
}
