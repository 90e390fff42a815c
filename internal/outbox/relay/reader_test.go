package relay

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// A test acts or crashes between a reader's steps.
type reader struct{ *cursor }

func newReader(t testing.TB, pool *pgxpool.Pool, limit int) *reader {
	t.Helper()
	return takeOver(t, newConn(t, pool), limit)
}

func newConn(t testing.TB, pool *pgxpool.Pool) *pgx.Conn {
	t.Helper()
	conn, err := dial(t, pool)(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { closeSession(context.Background(), conn) })
	_, err = conn.Exec(t.Context(), fmt.Sprintf(settingsSQL, 0))
	require.NoError(t, err)
	return conn
}

func takeOver(t testing.TB, conn *pgx.Conn, limit int) *reader {
	t.Helper()
	r := &reader{&cursor{conn: conn, limit: limit, maxLimit: limit}}
	require.NoError(t, r.lead(t.Context(), "test"))
	return r
}

func (r *reader) look(ctx context.Context) (w *window, page []record, more bool, err error) {
	n, err := r.poll(ctx)
	if w = r.next(n); w == nil || err != nil {
		return nil, nil, false, err
	}
	page, more, err = r.read(ctx, pageSQL, w.position, w.after.text, w.text)
	return w, page, more, err
}

func (r *reader) step(ctx context.Context, publish func(record)) (found bool, err error) {
	w, page, more, err := r.look(ctx)
	switch {
	case w == nil || err != nil:
		return false, err
	case len(page) == 0 && w == r.open:
		w.complete = true
		return r.step(ctx, publish)
	case len(page) == 0:
		if r.open == nil {
			r.done = w.snapshot
		}
		return false, nil
	}
	if _, err := r.store(ctx, w, nil); err != nil {
		return false, err
	}
	r.send(w, page, more, publish)
	return true, nil
}

func (r *reader) send(w *window, page []record, more bool, publish func(record)) {
	for _, rec := range page {
		publish(rec)
	}
	w.position, w.complete = page[len(page)-1].Position, !more
}

func (r *reader) finish(ctx context.Context) (err error) {
	if w := r.open; w != nil && w.complete {
		_, err = r.store(ctx, nil, nil)
	} else if w != nil {
		_, err = r.store(ctx, w, nil)
	}
	return err
}

func read(t testing.TB, r *reader) (positions []int64) {
	t.Helper()
	for {
		found, err := r.step(t.Context(), func(rec record) { positions = append(positions, rec.Position) })
		require.NoError(t, err)
		if !found {
			require.NoError(t, r.finish(t.Context()))
			return positions
		}
	}
}

// sessions are two connections for successive readers: a new backend per reader is slow.
type sessions struct {
	conns [2]*pgx.Conn
	used  int
}

func newSessions(t testing.TB, pool *pgxpool.Pool) *sessions {
	t.Helper()
	return &sessions{conns: [2]*pgx.Conn{newConn(t, pool), newConn(t, pool)}}
}

func (s *sessions) next(t testing.TB, limit int) *reader {
	t.Helper()
	s.used = 1 - s.used
	return takeOver(t, s.conns[s.used], limit)
}
