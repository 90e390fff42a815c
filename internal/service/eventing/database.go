package eventing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	connectTimeout = 5 * time.Second
	idleTimeout    = time.Minute
)

// databaseConfig connects to nothing. The server must not get the pool's parameters.
func databaseConfig(cfg Config, service string) (pool *pgxpool.Config, relay *pgx.ConnConfig, err error) {
	pool, err = pgxpool.ParseConfig(string(cfg.DatabaseURL))
	if err != nil {
		return nil, nil, errors.New("read DATABASE_URL: not a PostgreSQL URL") // pgx's own text may repeat the password
	}
	pool.MaxConns = int32(cfg.Pool.MaxConns)
	pool.ConnConfig.ConnectTimeout = connectTimeout
	relay = pool.ConnConfig.Copy()
	params := pool.ConnConfig.RuntimeParams
	params["application_name"] = service
	params["statement_timeout"] = fmt.Sprint(cfg.Pool.StatementTimeout.Milliseconds())
	params["idle_in_transaction_session_timeout"] = fmt.Sprint(idleTimeout.Milliseconds())
	// The inbox waits for a duplicate's commit, which REPEATABLE READ turns into an error.
	params["default_transaction_isolation"] = "read committed"
	return pool, relay, nil
}

// While the circuit is open the pool refuses new connections: a request gets its 503 immediately.
func (n *Node) openPool(ctx context.Context, cfg *pgxpool.Config) (*pgxpool.Pool, error) {
	cfg.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return n.database.Err() }
	cfg.ConnConfig.Tracer = connectTracer{n.database.Report}
	return pgxpool.NewWithConfig(ctx, cfg)
}

type connectTracer struct{ report func(error) }

func (connectTracer) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

func (c connectTracer) TraceConnectEnd(_ context.Context, data pgx.TraceConnectEndData) {
	c.report(data.Err)
}

// pgx takes no tracer without the query methods.
func (connectTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (c connectTracer) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if data.Err != nil {
		c.report(data.Err)
	}
}

// probeSQL needs what a commit needs, and leaves nothing behind:
//
//   - A read-only database, such as a standby, refuses commits.
//   - The message waits for the disk, and for standbys as synchronous_commit demands.
//   - The rows exceed work_mem: on a full disk old pages can be written, but no new file.
const probeSQL = `
begin;
do $$ begin
    if pg_is_in_recovery() or current_setting('transaction_read_only')::boolean then
        raise exception 'the database is read-only' using errcode = 'read_only_sql_transaction';
    end if;
end $$;
set local work_mem = '64kB';
select count(*) from generate_series(1, 10000);
select pg_logical_emit_message(true, 'twinbox.probe', '');
commit`

func probeDatabase(cfg *pgx.ConnConfig) func(context.Context) error {
	cfg = cfg.Copy()
	cfg.Tracer = nil
	return func(ctx context.Context) error {
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		defer conn.Close(ctx)
		if _, err = conn.PgConn().Exec(ctx, probeSQL).ReadAll(); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		return nil
	}
}

// checkTables finds a missing right, a lock that keeps writers out, and a pool without a connection. It adds no row.
func (n *Node) checkTables(ctx context.Context) error {
	return pgx.BeginFunc(ctx, n.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local lock_timeout = '1s'`); err != nil {
			return err
		}
		for _, table := range []string{"outbox", "inbox", "dead_letter"} {
			if _, err := tx.Exec(ctx, `insert into public.`+table+` select where false`); err != nil {
				return fmt.Errorf("insert into %s: %w", table, err)
			}
		}
		return nil
	})
}
