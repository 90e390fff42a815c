package eventing

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
)

// openPool prepares a pool. It connects to nothing: a database that is down keeps a service waiting, not crashing.
func openPool(ctx context.Context, cfg Config, service string) (*pgxpool.Pool, error) {
	pool, err := pgxpool.ParseConfig(string(cfg.DatabaseURL))
	if err != nil {
		return nil, errors.New("read DATABASE_URL: not a PostgreSQL URL") // pgx's own text may repeat the password
	}
	pool.MaxConns = int32(cfg.Pool.MaxConns)
	pool.ConnConfig.ConnectTimeout = cfg.Pool.ConnectTimeout
	params := pool.ConnConfig.RuntimeParams
	params["application_name"] = service
	params["statement_timeout"] = milliseconds(cfg.Pool.StatementTimeout)
	params["idle_in_transaction_session_timeout"] = milliseconds(cfg.Pool.IdleTimeout)
	// The promises rest on it: the inbox waits for a twin's commit, which REPEATABLE READ turns into an error.
	params["default_transaction_isolation"] = "read committed"
	opened, err := pgxpool.NewWithConfig(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	return opened, nil
}

func milliseconds(d interface{ Milliseconds() int64 }) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}
