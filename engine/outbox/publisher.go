package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	wsql "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
)

// Publisher returns a Watermill publisher that adds to the caller's transaction, for code that knows messages only. It
// is watermill-sql's own, with this package's schema: the statement, the checks and the guarantees are those of
// [Outbox.Add], and so are the errors (errors.As and errors.Is find them).
//
// A message is taken as any Watermill code writes it; its payload is JSON. What becomes of it:
//
//	id        its UUID, an id that the caller gives: the same message again adds nothing, another one under the same
//	          UUID is refused (see [Outbox.Add]). Of a text that is no UUID, such as a ULID, an id is derived that is the
//	          same each time; the text goes along as [HeaderMessageID]. Without one an id is made up
//	type      [TypeOf], else ce_type, else the name that Watermill's cqrs gives, else the topic
//	key       [KeyOf], else the record key or ce_subject, else one of its own: then messages are in no order, and
//	          each leaves a row behind in outbox_key
//	version   [VersionOf], else ce_aggregateversion, else the key's next number
//	source    ce_source, else [Config.Source], else the topic behind a slash
//	others    ce_time and ce_dataschema if present; everything else becomes an extension
//
// What cloudevent.Event.Message makes comes out as it was.
//
// Every statement runs under the given context, not under a message's and not, as watermill-sql alone would have it,
// under none. The publisher is of no use after the transaction's end.
func (o *Outbox) Publisher(ctx context.Context, tx pgx.Tx, options ...PublisherOption) (message.Publisher, error) {
	adapter := schemaAdapter{outbox: o, ctx: ctx}
	for _, option := range options {
		option(&adapter)
	}
	p, err := wsql.NewPublisher(executor{ctx: ctx, tx: tx, outbox: o}, wsql.PublisherConfig{SchemaAdapter: adapter}, nil)
	if err != nil {
		return nil, fmt.Errorf("make publisher: %w", err)
	}
	return p, nil
}

// PublisherOption says what a message is as an event, where its metadata do not or are not to decide. An error of the
// function refuses the call; its zero value leaves the matter to the metadata.
type PublisherOption func(*schemaAdapter)

// TypeOf names the type of each message's event.
func TypeOf(f func(topic string, msg *message.Message) (string, error)) PublisherOption {
	return func(a *schemaAdapter) { a.typeOf = f }
}

// KeyOf names the key: what keeps messages in order. It takes what watermill-kafka's NewWithPartitioningMarshaler
// takes.
func KeyOf(f func(topic string, msg *message.Message) (string, error)) PublisherOption {
	return func(a *schemaAdapter) { a.keyOf = f }
}

// VersionOf names the version that the event must have in its key; see [cloudevent.Event].
func VersionOf(f func(topic string, msg *message.Message) (int64, error)) PublisherOption {
	return func(a *schemaAdapter) { a.versionOf = f }
}

// executor lets watermill-sql, which knows database/sql, run its one statement on a pgx transaction. The publisher
// never queries.
type executor struct {
	wsql.ContextExecutor
	ctx    context.Context //nolint:containedctx // the publisher's interface has none, and passes Background here
	tx     pgx.Tx
	outbox *Outbox
}

// ExecContext ignores its context, which is watermill-sql's context.Background: the caller's deadline must reach the
// insert. A statement that inserted fewer rows than it was given messages is an error here, where database/sql users
// would have to compare. What it inserts is the batch of schemaAdapter's one query.
func (e executor) ExecContext(_ context.Context, _ string, args ...any) (sql.Result, error) {
	added, err := e.outbox.insert(e.ctx, e.tx, args[0].(*batch))
	return driver.RowsAffected(len(added)), err
}

// schemaAdapter is this outbox's table for watermill-sql's Publisher: every topic goes to the one table, by the one
// statement that locks, counts and inserts. It has the writing half of the interface: Watermill's Subscriber cannot
// read the table, package relay does, and migrations make it.
type schemaAdapter struct {
	wsql.SchemaAdapter
	outbox    *Outbox
	ctx       context.Context //nolint:containedctx // as in executor
	typeOf    func(topic string, msg *message.Message) (string, error)
	keyOf     func(topic string, msg *message.Message) (string, error)
	versionOf func(topic string, msg *message.Message) (int64, error)
}

// HeaderMessageID is the extension with a message's UUID as its publisher gave it, where that is no UUID.
const HeaderMessageID = "ce_messageid"

// nameMetadata is where the marshalers of Watermill's cqrs keep an event's name.
const nameMetadata = "name"

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
	b, err := a.outbox.batch(a.ctx, events)
	if err != nil {
		return wsql.Query{}, err
	}
	return wsql.Query{Query: insertSQL, Args: []any{b}}, nil
}

// eventOf is the message as an event; what the outbox has a default for may still be missing.
func (a schemaAdapter) eventOf(topic string, m *message.Message) (cloudevent.Event, error) {
	e := cloudevent.Event{
		Topic: topic, Data: m.Payload, DataSchema: m.Metadata[cloudevent.HeaderDataSchema],
		Source:     cmp.Or(m.Metadata[cloudevent.HeaderSource], a.outbox.cfg.Source, "/"+topic),
		Extensions: maps.Collect(maps.All(m.Metadata)), // the caller has the other
	}
	maps.DeleteFunc(e.Extensions, func(name, _ string) bool { return cloudevent.IsAttribute(name) })
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
