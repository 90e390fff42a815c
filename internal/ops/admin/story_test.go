package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/outbox"
)

func (b *bundle) story(t *testing.T, id string) adminapi.Story {
	t.Helper()
	return read[adminapi.Story](t, b, "story", adminapi.StoryQuery{ID: id})
}

type oneRecord struct{ id string }

func (r *oneRecord) ReadLog(_ context.Context, _ string, _ int32, from, _ int64) ([]*message.Message, error) {
	if from != 41 {
		return nil, nil
	}
	return []*message.Message{message.NewMessage(r.id, nil)}, nil
}

func stepsOf(story adminapi.Story) (steps []string) {
	for _, s := range story.Steps {
		words := strings.Fields(fmt.Sprintf("%s %s %s %s", s.Station, s.Consumer, s.Outcome, s.Cause))
		steps = append(steps, strings.Join(words, " "))
	}
	return steps
}

func TestTheStoryOfAnEventThatWasGivenUp(t *testing.T) {
	t.Parallel()
	var calls []asked
	records := &oneRecord{}
	b := setup(t, func(cfg *admin.Config, _ *http.Server) {
		for _, name := range []string{"a", "b"} {
			cfg.Consumers = append(cfg.Consumers, consumer(name, nil, nil, &calls))
		}
		cfg.Topics, cfg.Records = &brokerTopics{partitions: map[string]int32{"topic": 4}}, records
	})
	o, err := outbox.New(outbox.Config{Source: "/test"})
	require.NoError(t, err)
	var added []outbox.Added
	require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		early := audit.Action{By: "ada", Verb: "release", Kind: "outbox_key", Subject: "topic/k", Reason: "an earlier event"}
		if err := audit.Record(t.Context(), tx, early); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), `update operator_action set at = at - interval '1 minute'`); err != nil {
			return err
		}
		added, err = o.Add(t.Context(), tx, event.Event{
			Type: "t.v1", Topic: "topic", Key: "k", Data: []byte(`{"email":"ada@example.org"}`),
			Extensions: map[string]string{
				"ce_correlationid": "order-7", "ce_causationid": "before",
				"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
			},
		})
		return err
	}))
	id := added[0].ID
	records.id = id
	b.exec(t, `
insert into inbox (consumer, event_id, event_time, event_type, payload_hash, metadata, processed_at)
select c, $1, '1970-01-01', 't.v1', '\x01', metadata::jsonb, clock_timestamp() from (values
    ('b', '{"processing_time_ms":12,"topic":"topic","partition":3,"offset":41,"correlation_id":"order-7"}')
) v (c, metadata)`, id)
	b.file(t, filed{"a", id, "permanent", "schema_violation", "waiting", "", 1})
	var letter string
	require.NoError(t, b.pool.QueryRow(t.Context(), `
update dead_letter set failed_at = clock_timestamp(), error = 'ada@example.org is none', payload = 'ada@example.org'
returning id::text`).Scan(&letter))
	require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		return audit.Record(t.Context(), tx,
			audit.Action{By: "bob", Verb: "release", Kind: "outbox_key", Subject: "topic/k", Reason: "room again"},
			audit.Action{By: "ada", Verb: "edit", Kind: "dead_letter", Subject: letter, Reason: "a typing error"})
	}))

	story := b.story(t, id)
	require.Equal(t, adminapi.StoryKindEvent, story.Kind)
	require.ElementsMatch(t, []string{
		"outbox waiting", "record read", "inbox b applied", "dead_letter a waiting schema_violation",
		"audit release", "audit a edit",
	}, stepsOf(story))
	require.Equal(t, "outbox waiting", stepsOf(story)[0])
	require.Equal(t, "record read", stepsOf(story)[1])
	require.Equal(t, []string{"before"}, story.Related, "what it follows from")
	for _, s := range story.Steps {
		require.Equal(t, "test", s.Service)
		switch s.Station {
		case adminapi.StoryStepStationRecord:
			require.Equal(t, []any{"topic", int32(3), int64(41)}, []any{s.Topic, *s.Partition, *s.Offset})
		case adminapi.StoryStepStationOutbox:
			require.Equal(t, []any{int64(1), int64(1), "order-7", "before"},
				[]any{s.Position, s.Version, s.CorrelationID, s.CausationID})
		case adminapi.StoryStepStationInbox:
			require.Equal(t, "handled in 12 ms", s.Detail)
		case adminapi.StoryStepStationDeadLetter:
			require.Equal(t, letter, s.Subject)
		case adminapi.StoryStepStationAudit:
			require.Contains(t, []string{"by bob: room again", "by ada: a typing error"}, s.Detail)
		}
	}
	for _, other := range []string{
		"order-7", "test/" + letter, "topic[3]@41", "test@1", "0af7651916cd43dd8448eb211c80319c",
	} {
		require.Equal(t, []string{id}, b.story(t, other).Related, "%s leads to the event", other)
	}
	for _, none := range []string{
		"order-8", "test/0", "other/" + letter, "topic[9]@41", "topic[3]@42", "test@2", "other@1",
	} {
		require.Empty(t, b.story(t, none).Related, none)
	}
	text, err := json.Marshal(story)
	require.NoError(t, err)
	require.NotContains(t, string(text), "example.org")
	ofKey := b.story(t, "k")
	require.Contains(t, ofKey.Related, id, "the key of the event leads to it")
	require.Equal(t, adminapi.StoryKindKey, ofKey.Kind, "what has the key may be no user")
}

func TestTheStoryOfAReplayedEvent(t *testing.T) {
	t.Parallel()
	b := setup(t, withConsumers(admin.Consumer{Name: "a"}))
	b.file(t, filed{"a", "e", "permanent", "schema_violation", "replayed", "applied", 1})
	b.exec(t, `update dead_letter set failed_at = settled_at - interval '1 hour',
		first_failed_at = settled_at - interval '1 hour'`)
	b.exec(t, `
		insert into inbox (consumer, event_id, event_time, event_type, payload_hash, processed_at)
		select 'a', 'e', '1970-01-01', 't.v1', sha256(payload), settled_at - interval '1 ms' from dead_letter`)
	story := b.story(t, "e")
	require.Equal(t, []string{
		"record read", "dead_letter a waiting schema_violation", "inbox a applied", "dead_letter a replayed",
	}, stepsOf(story))
	require.Equal(t, "applied", story.Steps[3].Detail)
	require.Equal(t, time.Hour, story.Steps[3].At.Sub(story.Steps[1].At))
}

func TestTheStoryOfAKeyNamesAllThatWaits(t *testing.T) {
	t.Parallel()
	b := setup(t, withConsumers(admin.Consumer{Name: "a"}))
	b.file(t, filed{"a", "", "permanent", "handler_failed", "waiting", "", 150})
	require.Len(t, b.story(t, "k").Related, 150)
}

func TestTheStoryThatAServiceTells(t *testing.T) {
	t.Parallel()
	var calls []asked
	b := setup(t, func(cfg *admin.Config, _ *http.Server) {
		cfg.Consumers = []admin.Consumer{consumer("a", nil, nil, &calls)}
		cfg.Tell = func(_ context.Context, id string) (adminapi.Story, error) {
			if id != "someone" {
				return adminapi.Story{}, nil
			}
			return adminapi.Story{
				Kind: adminapi.StoryKindUser, Related: []string{"m", "m", "", "someone"},
				Steps: []adminapi.StoryStep{{At: time.Now(), Station: adminapi.StoryStepStationRequest, Outcome: "signed_up"}},
			}, nil
		}
	})
	story := b.story(t, "someone")
	require.Equal(t, adminapi.StoryKindUser, story.Kind)
	require.Equal(t, []string{"request signed_up"}, stepsOf(story))
	require.Equal(t, []string{"m"}, story.Related)
	b.file(t, filed{"a", "e", "permanent", "handler_failed", "waiting", "", 1})
	var key string
	require.NoError(t, b.pool.QueryRow(t.Context(), `select convert_from(key, 'UTF8') from dead_letter`).Scan(&key))
	require.NotEmpty(t, b.story(t, key).Related)
	unknown := b.story(t, "none/at all")
	require.Equal(t, adminapi.Story{ID: "none/at all", Steps: []adminapi.StoryStep{}, Related: []string{}}, unknown)
	foreign := b.story(t, uuid.NewString())
	require.Contains(t, foreign.Note, "give the key")
	for _, hint := range []adminapi.StoryQuery{{Key: "k"}, {At: time.Now()}} {
		hint.ID = uuid.NewString()
		require.Empty(t, read[adminapi.Story](t, b, "story", hint).Note)
	}
}
