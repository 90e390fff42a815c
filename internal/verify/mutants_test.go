package verify_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/verify"
)

type mutant struct {
	name string
	// before changes the publisher's messages, later the system after consumption. The events are the second and last of
	// "key-0".
	before, later func(t *testing.T, s *system, id *string)
	rule          verify.Rule
	kind          verify.Kind
	of            string // the subject; empty: the topic
	anonymous     bool   // the finding is about a key and not about that event
	echoes        bool   // other rules find it, too
}

func drop(*message.Message) []*message.Message { return nil }

var mutants = []mutant{
	{
		name: "a record is dropped", rule: "V1", kind: verify.Lost,
		before: func(_ *testing.T, s *system, id *string) { s.tamper = each(id, drop) },
	},
	{
		name: "a byte of a record is changed", rule: "V1", kind: verify.Altered,
		before: func(_ *testing.T, s *system, id *string) {
			s.tamper = each(id, func(m *message.Message) []*message.Message {
				altered := m.Copy()
				altered.Payload = []byte(`{"value":"kex-0"}`)
				return []*message.Message{altered}
			})
		},
	},
	{
		name: "a header of a record is changed", rule: "V1", kind: verify.Altered,
		before: func(_ *testing.T, s *system, id *string) {
			s.tamper = each(id, func(m *message.Message) []*message.Message {
				m.Metadata["ce_correlationid"] = "another"
				return []*message.Message{m}
			})
		},
	},
	{
		name: "a record is invented", rule: "V2", kind: verify.Ghost, anonymous: true,
		before: func(t *testing.T, s *system, id *string) {
			e := s.event(t, *id)
			e.ID, e.Key, e.Version = uuid.Must(uuid.NewV7()).String(), "stranger", 1
			s.lay(t, e, -1)
		},
	},
	{
		name: "a version is given to a second event", rule: "V2", kind: verify.Ghost, anonymous: true, echoes: true,
		before: func(t *testing.T, s *system, id *string) {
			e := s.event(t, *id)
			e.ID = uuid.Must(uuid.NewV7()).String()
			s.lay(t, e, -1)
		},
	},
	{
		name: "two versions are swapped", rule: "V3", kind: verify.Reordered,
		before: func(_ *testing.T, s *system, id *string) {
			s.tamper = func(msgs []*message.Message) (out []*message.Message) {
				for _, m := range msgs { // the last goes first, so what was before it comes behind it
					if m.Metadata[event.KeyMetadata] == "key-0" {
						*id = m.UUID
						break
					}
				}
				for i := range msgs {
					out = append(out, msgs[len(msgs)-1-i])
				}
				return out
			}
		},
	},
	{
		name: "a record lies in another partition", rule: "V3", kind: verify.Misplaced,
		before: func(t *testing.T, s *system, id *string) {
			s.tamper = each(id, func(m *message.Message) []*message.Message {
				e := s.event(t, m.UUID)
				s.lay(t, e, s.otherPlace(t, e.Key))
				return nil
			})
		},
	},
	{
		name: "a row is deleted, and its record dropped", rule: "V3", kind: verify.Gap, anonymous: true, echoes: true,
		before: func(_ *testing.T, s *system, id *string) { s.tamper = each(id, drop) },
		later: func(t *testing.T, s *system, id *string) {
			s.exec(t, `delete from outbox where event_id = $1`, *id)
			s.tamper = nil
			s.add(t, "key-0")
			s.publish(t)
			s.consume(t)
		},
	},
	{
		name: "an event is added twice", rule: "V5", kind: verify.Twice,
		later: func(t *testing.T, s *system, id *string) {
			s.exec(t, `insert into outbox
				(event_id, event_type, source, topic, key, version, data_schema, occurred_at, headers, payload)
				select event_id, event_type, source, topic, key, version, data_schema, occurred_at, headers, payload
				from outbox where event_id = $1`, *id)
		},
	},
	{
		name: "a record is passed over", rule: "V4", kind: verify.Lost, of: unordered,
		later: func(t *testing.T, s *system, _ *string) {
			s.exec(t, `delete from inbox where consumer = $1 and metadata ->> 'offset' = '0'
				and metadata ->> 'partition' = $2::int::text`, unordered, s.place(t, "key-0"))
		},
		anonymous: true,
	},
	{
		name: "a row of the inbox is deleted", rule: "V4", kind: verify.Lost, of: consumer,
		later: func(t *testing.T, s *system, id *string) {
			s.exec(t, `delete from inbox where consumer = $1 and event_id = $2`, consumer, *id)
		},
	},
	{
		name: "the inbox has another payload", rule: "V4", kind: verify.Altered, of: consumer,
		later: func(t *testing.T, s *system, id *string) {
			s.exec(t, `update inbox set payload_hash = sha256('other') where consumer = $1 and event_id = $2`, consumer, *id)
		},
	},
	{
		name: "an event takes effect a second time", rule: "V5", kind: verify.Twice, of: consumer,
		later: func(t *testing.T, s *system, id *string) {
			s.exec(t, `insert into inbox (consumer, event_id, event_time, event_type, payload_hash, metadata)
				select consumer, event_id, event_time + interval '1 ms', event_type, payload_hash, metadata
				from inbox where consumer = $1 and event_id = $2`, consumer, *id)
		},
	},
	{
		name: "an effect is invented", rule: "V5", kind: verify.Ghost, of: consumer, anonymous: true,
		later: func(t *testing.T, s *system, id *string) {
			s.exec(t, `insert into inbox (consumer, event_id, event_time, event_type, payload_hash, metadata)
				select consumer, 'invented', event_time, event_type, payload_hash, metadata
				from inbox where consumer = $1 and event_id = $2`, consumer, *id)
		},
	},
	{
		name: "the version of a key goes back", rule: "V6", kind: verify.Reordered, of: consumer,
		later: func(t *testing.T, s *system, _ *string) {
			s.exec(t, `update inbox_key set version = version - 1 where consumer = $1 and key = 'key-0'`, consumer)
		},
	},
	{
		name: "the version of a key is ahead", rule: "V6", kind: verify.Reordered, of: consumer, anonymous: true,
		later: func(t *testing.T, s *system, _ *string) {
			s.exec(t, `update inbox_key set version = version + 5 where consumer = $1 and key = 'key-0'`, consumer)
		},
	},
	{
		name: "the dead letter that holds a key is gone", rule: "V7", kind: verify.Lost, of: consumer, anonymous: true,
		later: func(t *testing.T, s *system, _ *string) {
			s.exec(t, `update inbox_key set parked_from = 3 where consumer = $1 and key = 'key-0'`, consumer)
		},
	},
	{
		name: "a key lets events pass its dead letter", rule: "V7", kind: verify.Reordered, of: consumer, anonymous: true,
		later: func(t *testing.T, s *system, _ *string) {
			s.exec(t, `insert into dead_letter (consumer, event_id, event_type, version, key, headers, payload, topic,
				partition, record_offset, class, code, error, attempts, first_failed_at, holds)
				values ($1, 'given-up', 't', 3, 'key-0', '[]', '', '', 0, 0, 'permanent', 'c', 'e', 1, clock_timestamp(), true)`,
				consumer)
		},
	},
	{
		name: "a mail is missing", rule: "mails", kind: verify.Broken, of: "mails",
		later: func(_ *testing.T, s *system, id *string) {
			s.checks = []verify.Check{{
				Name: "mails", Args: []any{*id},
				SQL: `select event_id, '' as key, 0 as version, 'no mail' as detail from inbox where event_id = $1 limit 1`,
			}}
		},
	},
}

func (m *mutant) make(t *testing.T) (s *system, id string) {
	t.Helper()
	s = newSystem(t)
	s.add(t, keysOf(5)...)
	id = s.add(t, "key-0")[0]
	if m.before != nil {
		m.before(t, s, &id)
	}
	s.publish(t)
	s.consume(t)
	if m.later != nil {
		m.later(t, s, &id)
	}
	return s, id
}

func TestEachMutantIsFound(t *testing.T) {
	t.Parallel()
	seen := map[verify.Rule]bool{}
	for _, m := range mutants {
		seen[m.rule] = true
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s, id := m.make(t)
			verdict := s.verify(t)
			require.Equal(t, 2, s.pauses, "looked at again")
			require.Contains(t, rulesOf(verdict), m.rule)
			f := findingOf(verdict, m.rule)
			require.Equal(t, m.kind, f.Kind)
			require.NotEmpty(t, f.Detail)
			if m.of == "" {
				m.of = s.topic
			}
			require.Equal(t, m.of, f.Subject)
			if !m.anonymous {
				require.Equal(t, id, f.EventID)
			}
			if !m.echoes {
				require.Len(t, verdict.Findings, 1, "no other rule finds it")
			}
		})
	}
	for _, rule := range []verify.Rule{"V1", "V2", "V3", "V4", "V5", "V6", "V7"} {
		require.True(t, seen[rule], "no mutant for %s", rule)
	}
}

func rulesOf(v *verify.Verdict) (rules []verify.Rule) {
	for _, f := range v.Findings {
		rules = append(rules, f.Rule)
	}
	return rules
}

func findingOf(v *verify.Verdict, rule verify.Rule) verify.Finding {
	for _, f := range v.Findings {
		if f.Rule == rule {
			return f
		}
	}
	return verify.Finding{}
}
