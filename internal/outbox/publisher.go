package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	wsql "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/cloudevent"
)

// Publisher returns a Watermill publisher that adds to the caller's transaction, for code that knows messages only. It
// is watermill-sql's own, with this package's schema: the statement, the checks and the guarantees are those of
// [Outbox.Add], and so are the errors (errors.As and errors.Is find them).
//
// A message needs a UUID and, in its metadata, the record key (or ce_subject) and ce_type; ce_source, ce_time,
// ce_dataschema and ce_aggregateversion are taken if present, everything else becomes an extension. What
// cloudevent.Event.Message makes fits. Its UUID is an id that the caller gives: the same message again adds nothing,
// another one under the same UUID is refused (see [Outbox.Add]).
//
// Every statement runs under the given context, not under a message's and not, as watermill-sql alone would have it,
// under none. The publisher is of no use after the transaction's end.
func (o *Outbox) Publisher(ctx context.Context, tx pgx.Tx) (message.Publisher, error) {
	p, err := wsql.NewPublisher(executor{ctx: ctx, tx: tx, outbox: o},
		wsql.PublisherConfig{SchemaAdapter: schemaAdapter{o, cloudevent.CauseFrom(ctx)}}, nil)
	if err != nil {
		return nil, fmt.Errorf("make publisher: %w", err)
	}
	return p, nil
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
// would have to look.
func (e executor) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	b, ok := onlyBatch(query, args)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	if err := e.outbox.exec(e.ctx, e.tx, b); err != nil {
		return nil, err
	}
	return result(len(b.ids)), nil
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
