package main

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// statementCounter counts what is sent to the server as a statement of its own, begin and commit included: each is a
// round trip. It is a tracer of pgx, and both variants go through pgx.
type statementCounter struct{ n atomic.Int64 }

// TraceQueryStart counts.
func (c *statementCounter) TraceQueryStart(
	ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData,
) context.Context {
	c.n.Add(1)
	return ctx
}

// TraceQueryEnd does nothing.
func (*statementCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *statementCounter) connConfig(dsn string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.Tracer = c
	return cfg, nil
}
