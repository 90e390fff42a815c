package outbox

import (
	"database/sql"
	"errors"
	"maps"
	"strconv"
	"time"

	wsql "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/cloudevent"
)

// schemaAdapter is this outbox's table for watermill-sql's Publisher: every topic goes to the one table, by the one
// statement that locks, counts and inserts. Watermill's Subscriber cannot read it; [Relay] does.
type schemaAdapter struct {
	outbox *Outbox
	cause  cloudevent.Cause
}

var _ wsql.SchemaAdapter = schemaAdapter{}

func (a schemaAdapter) InsertQuery(topic string, msgs message.Messages) (wsql.Query, error) {
	events := make([]cloudevent.Event, len(msgs))
	for i, m := range msgs {
		e, err := eventOf(topic, m)
		if err != nil {
			err.Index = i
			return wsql.Query{}, err
		}
		events[i] = e
	}
	b, err := a.outbox.batch(events, a.cause)
	if err != nil {
		return wsql.Query{}, err
	}
	return wsql.Query{Query: b.sql(), Args: []any{b}}, nil
}

// eventOf reads a message's metadata; what is missing is found by Event.check. A message without an id gets none made
// up: its publisher would not know it.
func eventOf(topic string, m *message.Message) (cloudevent.Event, *EventError) {
	if m.UUID == "" {
		return cloudevent.Event{}, refuse(CodeInvalidID, "the message has no UUID")
	}
	e := cloudevent.Event{
		ID: m.UUID, Topic: topic, Data: m.Payload,
		Source: m.Metadata[cloudevent.HeaderSource], Type: m.Metadata[cloudevent.HeaderType],
		Key: m.Metadata[cloudevent.KeyMetadata], DataSchema: m.Metadata[cloudevent.HeaderDataSchema],
		Extensions: maps.Clone(m.Metadata),
	}
	maps.DeleteFunc(e.Extensions, func(name, _ string) bool { return reserved(name) })
	subject := m.Metadata[cloudevent.HeaderSubject]
	if e.Key == "" {
		e.Key = subject
	}
	if subject != "" && subject != e.Key {
		return e, refuse(CodeInvalidKey, "the record key is not ce_subject")
	}
	var err error
	if text := m.Metadata[cloudevent.HeaderTime]; text != "" {
		if e.Time, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return e, refuse(CodeInvalidTime, "ce_time is not RFC 3339")
		}
	}
	if text := m.Metadata[cloudevent.HeaderVersion]; text != "" {
		if e.Version, err = strconv.ParseInt(text, 10, 64); err != nil {
			return e, refuse(CodeInvalidVersion, "ce_aggregateversion is not a number")
		}
	}
	return e, nil
}

// The reading half of the interface is for Watermill's Subscriber. The table is made by migrations.

func (schemaAdapter) SelectQuery(string, string, wsql.OffsetsAdapter) wsql.Query { return wsql.Query{} }

func (schemaAdapter) UnmarshalMessage(wsql.Scanner) (wsql.Row, error) {
	return wsql.Row{}, errors.ErrUnsupported
}
func (schemaAdapter) SchemaInitializingQueries(string) []wsql.Query { return nil }
func (schemaAdapter) SubscribeIsolationLevel() sql.IsolationLevel   { return sql.LevelReadCommitted }
