package window

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"
)

// TB lets the checks of testing.TB serve a rapid case.
func (s *schedule) TB() testing.TB { return rapidTB{s.t, s.T} }

type rapidTB struct {
	testing.TB
	rt *rapid.T
}

func (t rapidTB) Helper()                   {}
func (t rapidTB) Errorf(f string, a ...any) { t.rt.Errorf(f, a...) }
func (t rapidTB) FailNow()                  { t.rt.FailNow() }

// connTx is a transaction that was begun by hand, so that it can be prepared. Only what Add uses is there.
type connTx struct {
	pgx.Tx
	conn *pgxpool.Conn
}

func (c connTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return c.conn.SendBatch(ctx, b)
}

func (c connTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return c.conn.Query(ctx, sql, args...)
}
