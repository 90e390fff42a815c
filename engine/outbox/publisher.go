package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	wsql "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
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
	adapter := schemaAdapter{outbox: o, cause: cloudevent.CauseFrom(ctx)}
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

// executor lets watermill-sql, which knows database/sql, run its one statement on a pgx transaction.
type executor struct {
	ctx    context.Context //nolint:containedctx // the publisher's interface has none, and passes Background here
	tx     pgx.Tx
	outbox *Outbox
}

var _ wsql.ContextExecutor = executor{}

// ExecContext ignores its context, which is watermill-sql's context.Background: the caller's deadline must reach the
// insert. A statement that inserted fewer rows than it was given messages is an error here, where database/sql users
// would have to compare.
func (e executor) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	b, ok := onlyBatch(query, args)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	added, err := e.outbox.insert(e.ctx, e.tx, b)
	return result(len(added)), err
}

// onlyBatch takes the batch out of the one query that schemaAdapter makes.
func onlyBatch(query string, args []any) (*batch, bool) {
	if len(args) != 1 {
		return nil, false
	}
	b, ok := args[0].(*batch)
	return b, ok && query == b.sql()
}

func (e executor) Exec(query string, args ...any) (sql.Result, error) {
	return e.ExecContext(e.ctx, query, args...)
}

// The publisher never queries.

func (executor) Query(string, ...any) (*sql.Rows, error) { return nil, errors.ErrUnsupported }
func (executor) QueryRow(string, ...any) *sql.Row        { return nil }
func (executor) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errors.ErrUnsupported
}
func (executor) QueryRowContext(context.Context, string, ...any) *sql.Row { return nil }

type result int64

func (r result) RowsAffected() (int64, error) { return int64(r), nil }
func (result) LastInsertId() (int64, error)   { return 0, errors.ErrUnsupported }
