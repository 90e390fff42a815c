package relay

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

const fillSQL = `
insert into public.outbox
    (event_id, event_type, source, topic, key, version, data_schema, occurred_at, headers, payload)
select gen_random_uuid(), 'com.example.test.happened.v1', '/twinbox/test', 'test.events.v1', 'key-' || n % 1000,
    n / 1000 + 1, 'https://example.com/schema.json', now(), $2::jsonb, convert_to(repeat('x', 300), 'utf8')
from generate_series(0, $1::bigint - 1) as n`

func fill(t testing.TB, pool *pgxpool.Pool, n int, headers any) {
	t.Helper()
	_, err := pool.Exec(t.Context(), fillSQL, n, headers)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `vacuum analyze public.outbox`)
	require.NoError(t, err)
}

type counter struct {
	n    atomic.Int64
	want int64
	done chan struct{}
}

func (c *counter) Publish(_ string, msgs ...*message.Message) error {
	if c.n.Add(int64(len(msgs))) == c.want {
		close(c.done)
	}
	return nil
}

func (c *counter) Close() error { return nil }

func BenchmarkRelay(b *testing.B) {
	for name, headers := range map[string]any{
		"plain": nil, "traced": `{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`,
	} {
		b.Run(name, func(b *testing.B) {
			const n = 200_000
			pool := newDatabase(b)
			fill(b, pool, n, headers)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				// The last relay was stopped after its last send, so its window may be open.
				_, err := pool.Exec(b.Context(), `update outbox_cursor set done = '3:3:', head = 0, mark_x = '{0}',
					mark_h = '{0}', win = null, win_pos = null`)
				require.NoError(b, err)
				c := &counter{want: n, done: make(chan struct{})}
				r, err := New(Config{Connect: dial(b, pool), Publisher: c})
				require.NoError(b, err)
				ctx, cancel := context.WithCancel(b.Context())
				result := make(chan error, 1)
				go func() { result <- r.Run(ctx) }()
				<-c.done
				cancel()
				require.NoError(b, <-result)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}
