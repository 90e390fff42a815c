package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	wsql "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
)

// Publisher returns watermill-sql's Publisher, which adds messages to the caller's transaction. Each call of Publish is
// one [Outbox.Add], with its guarantees and its errors.
//
// Any message with a JSON payload becomes an event. Its fields come from:
//
//	id        the message's UUID, as an id given by the caller: see [Outbox.Add]. A text that is not a UUID
//	          always becomes the same UUID; [HeaderMessageID] carries the text. An empty one becomes a new id
//	type      ce_type, else the name that Watermill's cqrs gives the message, else the topic
//	key       the record key or ce_subject, else the UUID, or a new one. Each key leaves a row in outbox_key
//	version   ce_aggregateversion, else the key's next number
//	source    ce_source, else [Config.Source], else a slash and the topic
//	others    ce_time and ce_dataschema. The other metadata become extensions
//
// Every statement runs under ctx. Do not use the publisher after the transaction.
func (o *Outbox) Publisher(ctx context.Context, tx pgx.Tx) (message.Publisher, error) {
	into := table{ctx: ctx, tx: tx, outbox: o}
	return wsql.NewPublisher(into, wsql.PublisherConfig{SchemaAdapter: into}, nil)
}

// table implements the methods of watermill-sql that a publisher calls.
type table struct {
	wsql.ContextExecutor
	wsql.SchemaAdapter
	ctx    context.Context //nolint:containedctx // watermill-sql passes its methods none, or Background
	tx     pgx.Tx
	outbox *Outbox
}

// InsertQuery checks the messages' events. Its query carries them as one argument to ExecContext.
func (t table) InsertQuery(topic string, msgs message.Messages) (wsql.Query, error) {
	events := make([]event.Event, len(msgs))
	for i, msg := range msgs {
		e, err := t.eventOf(topic, msg)
		if refused, is := errors.AsType[*EventError](err); is {
			refused.Index = i
		}
		if err != nil {
			return wsql.Query{}, err
		}
		events[i] = e
	}
	entries, err := t.outbox.prepare(t.ctx, events)
	return wsql.Query{Query: insertSQL, Args: []any{entries}}, err
}

// ExecContext ignores its context, which has no deadline.
func (t table) ExecContext(_ context.Context, _ string, args ...any) (sql.Result, error) {
	added, err := t.outbox.insert(t.ctx, t.tx, args[0].([]entry))
	return driver.RowsAffected(len(added)), err
}

// HeaderMessageID is the extension with a message's UUID, if the event's id is another text.
const HeaderMessageID = "ce_messageid"

const nameMetadata = "name"

func (t table) eventOf(topic string, msg *message.Message) (event.Event, error) {
	e, _ := event.FromMessage(msg) // its error is about fields that are filled in or checked below
	e.Topic, e.Source = topic, cmp.Or(e.Source, t.outbox.cfg.Source, "/"+topic)
	if err := setID(&e, msg.UUID); err != nil {
		return e, err
	}
	e.Type = cmp.Or(e.Type, msg.Metadata[nameMetadata], topic)
	e.Key = cmp.Or(msg.Metadata[event.KeyMetadata], e.Key, e.ID, uuid.NewString())
	subject, version := msg.Metadata[event.HeaderSubject], msg.Metadata[event.HeaderVersion]
	switch {
	case subject != "" && subject != e.Key:
		return e, invalid("the record key is not ce_subject")
	case e.Time.IsZero() && msg.Metadata[event.HeaderTime] != "":
		return e, invalid("ce_time is not RFC 3339, or outside the years 2000 to 2199")
	case e.Version == 0 && version != "" && version != "0":
		return e, invalid("ce_aggregateversion is not a positive number")
	}
	return e, nil
}

func setID(e *event.Event, text string) error {
	if text == "" {
		return nil
	}
	id, err := uuid.Parse(text)
	if err != nil {
		if err := event.ValidID(text); err != nil {
			return invalid("the UUID is no event id: %v", err)
		}
		id = uuid.NewSHA1(uuid.NameSpaceOID, []byte(text))
	}
	if e.ID = id.String(); e.ID == text {
		return nil
	}
	if e.Extensions == nil {
		e.Extensions = map[string]string{}
	}
	e.Extensions[HeaderMessageID] = text
	return nil
}
