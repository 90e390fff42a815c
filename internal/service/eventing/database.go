package eventing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/service/circuit"
)

const (
	connectTimeout = 5 * time.Second
	pingTimeout    = 2 * time.Second // of a connection that was idle: its server may have vanished
	schemaTimeout  = 10 * time.Second
	idleTimeout    = time.Minute
)

// openDatabase connects to nothing. During an outage the pool refuses new connections: a request gets its 503 without a
// wait.
func (n *Node) openDatabase(ctx context.Context) error {
	cfg := n.setup.Config
	pool, err := parsePool(cfg.DatabaseURL)
	if err != nil {
		return err
	}
	n.relayDatabase = pool.ConnConfig.Copy() // without the pool's parameters
	params := pool.ConnConfig.RuntimeParams
	params["application_name"] = n.setup.Service
	params["statement_timeout"] = fmt.Sprint(cfg.Pool.StatementTimeout.Milliseconds())
	params["idle_in_transaction_session_timeout"] = fmt.Sprint(idleTimeout.Milliseconds())
	// The inbox waits for a duplicate's commit, which REPEATABLE READ turns into an error.
	params["default_transaction_isolation"] = "read committed"
	n.database = circuit.New(circuit.Config{
		Name: "database", Probe: probeDatabase(pool.ConnConfig.Copy()), OnUp: func() { n.Pool.Reset() },
		Log: n.setup.Log, Registerer: n.Admin.Registry(),
	})
	n.relayDatabase.Tracer = failureTracer{n.database.Report}
	pool.ConnConfig.Tracer = n.relayDatabase.Tracer
	pool.MaxConns, pool.PingTimeout = int32(cfg.Pool.MaxConns), pingTimeout
	pool.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return n.database.Err() }
	if n.Pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return fmt.Errorf("open pool: %w", err)
	}
	return nil
}

func parsePool(url config.Secret) (*pgxpool.Config, error) {
	pool, err := pgxpool.ParseConfig(url.Reveal())
	if err != nil {
		return nil, errors.New("read DATABASE_URL: not a PostgreSQL URL") // pgx's own text may repeat the password
	}
	pool.ConnConfig.ConnectTimeout = connectTimeout
	return pool, nil
}

func (n *Node) connectRelay(ctx context.Context) (*pgx.Conn, error) {
	if err := n.database.Await(ctx); err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, n.relayDatabase)
}

type failureTracer struct{ report func(error) }

func (failureTracer) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

func (f failureTracer) TraceConnectEnd(_ context.Context, data pgx.TraceConnectEndData) {
	f.report(data.Err)
}

func (failureTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (f failureTracer) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	f.report(data.Err)
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
