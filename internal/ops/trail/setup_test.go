package operate

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox/window"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const testTopic = outboxtest.Topic

var (
	newOutbox   = outboxtest.New
	newDatabase = outboxtest.Database
	event       = outboxtest.Event
	commit      = outboxtest.Commit
	addMany     = outboxtest.CommitMany
	addIn       = outboxtest.Add
	begin       = outboxtest.Begin
)

// newLedger gives a broker that takes everything.
func newLedger() outboxtest.ContextLedger {
	return outboxtest.ContextLedger{Ledger: outboxtest.NewLedger()}
}

// newReader reads for a relay that leads from now on.
func newReader(t testing.TB, pool *pgxpool.Pool, pageSize int) *window.Reader {
	t.Helper()
	conn, err := outboxtest.Dial(t, pool)(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	term := &window.Term{Lease: time.Minute} // which only the epoch ends
	require.NoError(t, conn.QueryRow(t.Context(),
		`update public.outbox_cursor set epoch = epoch + 1 returning epoch`).Scan(&term.Epoch))
	r, err := window.NewReader(t.Context(), conn, term, window.NewPager(pageSize, 1<<20))
	require.NoError(t, err)
	return r
}

// read runs windows until there is nothing new and returns the positions in the order of reading.
func read(t testing.TB, r *window.Reader) (positions []int64) {
	t.Helper()
	for {
		p, found, err := r.Next(t.Context(), false)
		require.NoError(t, err)
		if !found {
			return positions
		}
		for len(p.Records) > 0 {
			for _, rec := range p.Records {
				positions = append(positions, rec.Position)
			}
			p, err = r.Page(t.Context(), p.Last())
			require.NoError(t, err)
		}
		require.NoError(t, r.Finish(t.Context(), nil))
	}
}

// restoreHere pretends that the database came from another cluster.
func restoreHere(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `update outbox_cursor set sysid = 1`)
	require.NoError(t, err)
}
