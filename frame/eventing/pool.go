package eventing

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// connectTimeout is for opening a connection.
	connectTimeout = 5 * time.Second
	// idleTimeout is how long a transaction may do nothing before the server ends it.
	idleTimeout = time.Minute
)

// databaseConfig reads how to connect, for the pool and, as ConnConfig, for a connection beside it: the URL may hold
// parameters that are the pool's own, and a server refuses what it does not know. It connects to nothing.
func databaseConfig(cfg Config) (*pgxpool.Config, error) {
	pool, err := pgxpool.ParseConfig(string(cfg.DatabaseURL))
	if err != nil {
		return nil, errors.New("read DATABASE_URL: not a PostgreSQL URL") // pgx's own text may repeat the password
	}
	pool.MaxConns = int32(cfg.Pool.MaxConns)
	pool.ConnConfig.ConnectTimeout = connectTimeout
	return pool, nil
}

// poolConfig is databaseConfig with the settings of the pool's sessions. The relay makes its own.
func poolConfig(cfg Config, service string) (*pgxpool.Config, error) {
	pool, err := databaseConfig(cfg)
	if err != nil {
		return nil, err
	}
	params := pool.ConnConfig.RuntimeParams
	params["application_name"] = service
	params["statement_timeout"] = milliseconds(cfg.Pool.StatementTimeout)
	params["idle_in_transaction_session_timeout"] = milliseconds(idleTimeout)
	// The promises rest on it: the inbox waits for a twin's commit, which REPEATABLE READ turns into an error.
	params["default_transaction_isolation"] = "read committed"
	return pool, nil
}

// openPool prepares a pool. A database that is down keeps a service waiting, not crashing.
//
// While the circuit knows that it is down the pool opens no connection and says so at once: a request is answered 503
// in a moment and not after its timeout. An attempt that fails is reported to the circuit.
func (n *Node) openPool(ctx context.Context, cfg *pgxpool.Config) (*pgxpool.Pool, error) {
	cfg.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return n.dependencies.database.Err() }
	cfg.AfterConnect = n.writers.admit
	cfg.ConnConfig.Tracer = connectTracer{n.dependencies.database.Report}
	opened, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	return opened, nil
}

// connectTracer hears of every connection that could not be made and of every statement that failed.
type connectTracer struct{ report func(error) }

// TraceConnectStart implements [pgx.ConnectTracer].
func (connectTracer) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

// TraceConnectEnd implements [pgx.ConnectTracer].
func (c connectTracer) TraceConnectEnd(_ context.Context, data pgx.TraceConnectEndData) {
	c.report(data.Err)
}

// TraceQueryStart implements [pgx.QueryTracer], without which pgx takes no tracer.
func (connectTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer]: a statement that failed is reported too. It may have lost its connection,
// or the server has no room left; what is the statement's own fault the circuit leaves alone.
func (c connectTracer) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	c.report(data.Err)
}

func milliseconds(d interface{ Milliseconds() int64 }) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}
