package verify_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/verify"
)

// The lost event is the middle one of its key's three.
func TestALostEventCountsAsARow(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.add(t, keysOf(5)...)
	id := s.add(t, "key-0", "key-0")[0]
	s.publish(t)
	s.consume(t)
	m := s.record(t, id)
	origin, _ := event.OriginFrom(m.Context())
	headers := map[string]string(m.Metadata)
	delete(headers, event.KeyMetadata)
	s.exec(t, `delete from outbox where event_id = $1`, id)
	require.Equal(t, verify.Rule("V2"), s.verify(t).Findings[0].Rule)

	s.exec(t, `insert into outbox_lost
		(topic, partition, "offset", event_id, event_type, key, version, headers, payload, appended_at)
		values ($1, $2, $3, $4, $5, 'key-0', 2, $6, $7, $8)`,
		s.topic, origin.Partition, origin.Offset, id, headers[event.HeaderType], headers, []byte(m.Payload), origin.Time)
	requireWhole(t, s.verify(t))

	s.exec(t, `update outbox_lost set payload = '{}'`)
	require.Equal(t, verify.Altered, s.verify(t).Findings[0].Kind)
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
	for p := range int32(partitions) {
		for _, m := range s.records(t, p, 0) {
			if m.UUID == id {
				found = m
			}
		}
	}
	require.NotNil(t, found)
	return found
}
