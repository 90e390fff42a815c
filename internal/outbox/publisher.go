package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"

	wsql "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
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
	into := table{ctx: ctx, tx: tx, outbox: o, options: options}
	p, err := wsql.NewPublisher(into, wsql.PublisherConfig{SchemaAdapter: into}, nil)
	if err != nil {
		return nil, fmt.Errorf("make publisher: %w", err)
	}
	return p, nil
}

// PublisherOption says what a message is as an event, where its metadata do not or are not to decide. An error of the
// function refuses the call; its zero value leaves the matter to the metadata.
type PublisherOption func(*cloudevent.Event, *message.Message) error

// TypeOf names the type of each message's event.
func TypeOf(f func(topic string, msg *message.Message) (string, error)) PublisherOption {
	return option("type", func(e *cloudevent.Event) *string { return &e.Type }, f)
}

// KeyOf names the key: what keeps messages in order. It takes what watermill-kafka's NewWithPartitioningMarshaler
// takes.
func KeyOf(f func(topic string, msg *message.Message) (string, error)) PublisherOption {
	return option("key", func(e *cloudevent.Event) *string { return &e.Key }, f)
}

// VersionOf names the version that the event must have in its key; see [cloudevent.Event].
func VersionOf(f func(topic string, msg *message.Message) (int64, error)) PublisherOption {
	return option("version", func(e *cloudevent.Event) *int64 { return &e.Version }, f)
}

// option sets a field to what a function says.
func option[T comparable](
	name string, field func(*cloudevent.Event) *T, f func(string, *message.Message) (T, error),
) PublisherOption {
	return func(e *cloudevent.Event, m *message.Message) error {
		said, err := f(e.Topic, m)
		if err != nil {
			return fmt.Errorf("name the %s of message %s: %w", name, m.UUID, err)
		}
		*field(e) = cmp.Or(said, *field(e))
		return nil
	}
}

// table is this outbox's table for watermill-sql's Publisher: every topic goes to the one table, by the one statement
// that locks, counts and inserts. It lets watermill-sql, which knows database/sql, run that statement on a pgx
// transaction. Of both interfaces it has what a publisher calls: Watermill's Subscriber cannot read the table, package
// relay does, and migrations make it.
type table struct {
	wsql.ContextExecutor
	wsql.SchemaAdapter
	ctx     context.Context //nolint:containedctx // the publisher's interfaces have none, or pass Background here
	tx      pgx.Tx
	outbox  *Outbox
	options []PublisherOption
}

// ExecContext ignores its context, which is watermill-sql's context.Background: the caller's deadline must reach the
// insert. A statement that inserted fewer rows than it was given messages is an error here, where database/sql users
// would have to compare. What it inserts is the batch of InsertQuery.
func (t table) ExecContext(_ context.Context, _ string, args ...any) (sql.Result, error) {
	added, err := t.outbox.insert(t.ctx, t.tx, args[0].(*batch))
	return driver.RowsAffected(len(added)), err
}

func (t table) InsertQuery(topic string, msgs message.Messages) (wsql.Query, error) {
	events := make([]cloudevent.Event, len(msgs))
	for i, m := range msgs {
		e, err := t.eventOf(topic, m)
		if refused, is := errors.AsType[*EventError](err); is {
			refused.Index = i
		}
		if err != nil {
			return wsql.Query{}, err
		}
		events[i] = e
	}
	b, err := t.outbox.batch(t.ctx, events)
	if err != nil {
		return wsql.Query{}, err
	}
	return wsql.Query{Query: insertSQL, Args: []any{b}}, nil
}

// HeaderMessageID is the extension with a message's UUID as its publisher gave it, where that is no UUID.
const HeaderMessageID = "ce_messageid"

// nameMetadata is where the marshalers of Watermill's cqrs keep an event's name.
const nameMetadata = "name"

// eventOf is the message as an event: the options' word, else the metadata's, else what takes their place. What the
// outbox has a default for may still be missing.
func (t table) eventOf(topic string, m *message.Message) (cloudevent.Event, error) {
	e, _ := cloudevent.FromMessage(m) // that it is no whole event is no error yet
	e.Topic, e.Source = topic, cmp.Or(e.Source, t.outbox.cfg.Source, "/"+topic)
	if err := identify(&e, m.UUID); err != nil {
		return e, err
	}
	e.Type = cmp.Or(e.Type, m.Metadata[nameMetadata], topic)
	e.Key = cmp.Or(m.Metadata[cloudevent.KeyMetadata], e.Key, e.ID)
	for _, option := range t.options {
		if err := option(&e, m); err != nil {
			return e, err
		}
	}
	if e.Key == "" { // no id either
		e.Key = uuid.NewString()
	}
	subject, version := m.Metadata[cloudevent.HeaderSubject], m.Metadata[cloudevent.HeaderVersion]
	switch {
	case subject != "" && subject != e.Key:
		return e, refuse(CodeInvalidKey, "the record key is not ce_subject")
	case e.Time.IsZero() && m.Metadata[cloudevent.HeaderTime] != "":
		return e, refuse(CodeInvalidTime, "ce_time is not RFC 3339, or outside the years 2000 to 2199")
	case e.Version == 0 && version != "" && version != "0":
		return e, refuse(CodeInvalidVersion, "ce_aggregateversion is not a positive number")
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
		e.Extensions = maps.Collect(maps.All(e.Extensions))
		e.Extensions[HeaderMessageID] = text
	}
	return nil
}
