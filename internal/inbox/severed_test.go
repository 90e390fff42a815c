package inbox_test

import (
	"bytes"
	"context"
	"net"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

// severing breaks connections at each answer that cut selects: the client never gets it.
func (b *bundle) severing(t *testing.T, cut func(answer []byte) bool) *pgxpool.Pool {
	t.Helper()
	return b.dialing(t, func(conn net.Conn) net.Conn { return &severed{Conn: conn, cut: cut} })
}

func (b *bundle) dialing(t *testing.T, between func(net.Conn) net.Conn) *pgxpool.Pool {
	t.Helper()
	cfg := b.Pool.Config()
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return between(conn), nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	b.Config.Pool = pool
	return pool
}

type severed struct {
	net.Conn
	cut func([]byte) bool
}

func (s *severed) Read(into []byte) (int, error) {
	n, err := s.Conn.Read(into)
	if n > 0 && s.cut(into[:n]) {
		_ = s.Close()
		return 0, syscall.ECONNRESET
	}
	return n, err
}

func isCommitted(answer []byte) bool { return bytes.Contains(answer, []byte("COMMIT\x00")) }

// Only an event whose commit was not answered is reported as its redelivery is.
func TestLostConnectionsChangeNothing(t *testing.T) {
	t.Parallel()
	shared := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(drawEvent), 1, 8).Draw(rt, "events")
		placeByID(events)
		configure := drawConfig(rt)
		batch := rapid.IntRange(0, 8).Draw(rt, "batch")
		suspect := rapid.Bool().Draw(rt, "suspect")
		losses := rapid.SliceOfNDistinct(rapid.Int64Range(1, 60), 0, 4, rapid.ID).Draw(rt, "answers lost")
		whole := shared.play(t, batch, configure, events)
		lost := make(map[int64]bool, len(losses))
		for _, n := range losses {
			lost[n] = true
		}
		var answers, ended atomic.Int64
		var pool *pgxpool.Pool
		severed := shared.play(t, batch, func(c *inbox.Config) {
			configure(c)
			pool = newBundle(shared.Pool).severing(t, func([]byte) bool {
				return ended.Load() < int64(len(events)) && lost[answers.Add(1)]
			})
			c.Pool = pool
			c.Host.(*host).OnOutcome = func(event.Event, inbox.Outcome) { ended.Add(1) }
			if suspect {
				shared.Exec(t, ownerDied)
			}
		}, events)
		pool.Close()
		require.Equal(rt, withoutAttempts(whole[len(events):]), withoutAttempts(severed[len(events):]))
		for i := range events {
			if severed[i] != whole[i] {
				require.Contains(rt, repeated, strings.TrimPrefix(severed[i], events[i].ID+" "))
			}
		}
	})
}

// placeByID gives an id one key and version. Under a second one, a duplicate raises that key if it comes again after
// the version before.
func placeByID(events []event.Event) {
	first := map[string]event.Event{}
	for i, e := range events {
		if earlier, again := first[e.ID]; again {
			events[i].Key, events[i].Version = earlier.Key, earlier.Version
		} else {
			first[e.ID] = e
		}
	}
}

var repeated = []string{string(inbox.Duplicate), string(inbox.Stale)}

var attemptsOfLetter = regexp.MustCompile(`^(letter .*) \d+ ([tf] [tf] )`)

// A lost connection adds an attempt.
func withoutAttempts(told []string) []string {
	for i, line := range told {
		told[i] = attemptsOfLetter.ReplaceAllString(line, "$1 $2")
	}
	return told
}
