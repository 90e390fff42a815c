package outbox

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	wsql "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"example.com/twinbox/engine/cloudevent"
)

// schemaAdapter is this outbox's table for watermill-sql's Publisher: every topic goes to the one table, by the one
// statement that locks, counts and inserts. Watermill's Subscriber cannot read it; package relay does.
type schemaAdapter struct {
	outbox    *Outbox
	cause     cloudevent.Cause
	typeOf    func(topic string, msg *message.Message) (string, error)
	keyOf     func(topic string, msg *message.Message) (string, error)
	versionOf func(topic string, msg *message.Message) (int64, error)
}

// HeaderMessageID is the extension with a message's UUID as its publisher gave it, where that is no UUID.
const HeaderMessageID = "ce_messageid"

// nameMetadata is where the marshalers of Watermill's cqrs keep an event's name.
const nameMetadata = "name"

var _ wsql.SchemaAdapter = schemaAdapter{}

func (a schemaAdapter) InsertQuery(topic string, msgs message.Messages) (wsql.Query, error) {
	events := make([]cloudevent.Event, len(msgs))
	for i, m := range msgs {
		e, err := a.eventOf(topic, m)
		if refused, is := errors.AsType[*EventError](err); is {
			refused.Index = i
		}
		if err != nil {
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

// eventOf is the message as an event; what the outbox has a default for may still be missing.
func (a schemaAdapter) eventOf(topic string, m *message.Message) (cloudevent.Event, error) {
	e := cloudevent.Event{
		Topic: topic, Data: m.Payload, DataSchema: m.Metadata[cloudevent.HeaderDataSchema],
		Source:     cmp.Or(m.Metadata[cloudevent.HeaderSource], a.outbox.cfg.Source, "/"+topic),
		Extensions: maps.Clone(m.Metadata),
	}
	maps.DeleteFunc(e.Extensions, func(name, _ string) bool { return reserved(name) })
	if err := identify(&e, m.UUID); err != nil {
		return e, err
	}
	if err := a.describe(&e, m); err != nil {
		return e, err
	}
	if subject := m.Metadata[cloudevent.HeaderSubject]; subject != "" && subject != e.Key {
		return e, refuse(CodeInvalidKey, "the record key is not ce_subject")
	}
	if text := m.Metadata[cloudevent.HeaderTime]; text != "" {
		var err error
		if e.Time, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return e, refuse(CodeInvalidTime, "ce_time is not RFC 3339")
		}
	}
	return e, nil
}

// identify gives the event the id that the message's UUID stands for, and leaves it to the outbox if there is none.
func identify(e *cloudevent.Event, text string) error {
	if text == "" {
		return nil
	}
	id, err := uuid.Parse(text)
	if err != nil {
		if err := cloudevent.ValidID(text); err != nil {
			return refuse(CodeInvalidID, err.Error())
		}
		id = uuid.NewSHA1(uuid.NameSpaceOID, []byte(text))
	}
	if e.ID = id.String(); e.ID != text {
		if e.Extensions == nil {
			e.Extensions = make(map[string]string, 1)
		}
		e.Extensions[HeaderMessageID] = text
	}
	return nil
}

// describe fills in type, key and version: the options' word, else the metadata's, else what takes their place.
func (a schemaAdapter) describe(e *cloudevent.Event, m *message.Message) (err error) {
	if a.typeOf != nil {
		if e.Type, err = a.typeOf(e.Topic, m); err != nil {
			return fmt.Errorf("name the type of message %s: %w", m.UUID, err)
		}
	}
	if a.keyOf != nil {
		if e.Key, err = a.keyOf(e.Topic, m); err != nil {
			return fmt.Errorf("name the key of message %s: %w", m.UUID, err)
		}
	}
	if a.versionOf != nil {
		if e.Version, err = a.versionOf(e.Topic, m); err != nil {
			return fmt.Errorf("name the version of message %s: %w", m.UUID, err)
		}
	}
	e.Type = cmp.Or(e.Type, m.Metadata[cloudevent.HeaderType], m.Metadata[nameMetadata], e.Topic)
	e.Key = cmp.Or(e.Key, m.Metadata[cloudevent.KeyMetadata], m.Metadata[cloudevent.HeaderSubject], e.ID)
	if e.Key == "" { // no id either
		e.Key = uuid.NewString()
	}
	if text := m.Metadata[cloudevent.HeaderVersion]; text != "" && e.Version == 0 {
		if e.Version, err = strconv.ParseInt(text, 10, 64); err != nil {
			return refuse(CodeInvalidVersion, "ce_aggregateversion is not a number")
		}
	}
	return nil
}

// The reading half of the interface is for Watermill's Subscriber. The table is made by migrations.

func (schemaAdapter) SelectQuery(string, string, wsql.OffsetsAdapter) wsql.Query { return wsql.Query{} }

func (schemaAdapter) UnmarshalMessage(wsql.Scanner) (wsql.Row, error) {
	return wsql.Row{}, errors.ErrUnsupported
}
func (schemaAdapter) SchemaInitializingQueries(string) []wsql.Query { return nil }
func (schemaAdapter) SubscribeIsolationLevel() sql.IsolationLevel   { return sql.LevelReadCommitted }
