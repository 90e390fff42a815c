package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

// go test -run '^$' -bench Inbox -benchtime 20000x ./internal/inbox
//
// One partition's loop without Kafka. The handler inserts one row.
func BenchmarkInbox(b *testing.B) {
	for _, order := range []inbox.Order{inbox.Unordered, inbox.Latest} {
		for _, duplicates := range []int{1, 50, 100} {
			name := fmt.Sprintf("%s/duplicates=%d%%/", order, duplicates)
			for _, batch := range []int{1, 200} {
				load := load{batch: batch, order: order, duplicates: duplicates}
				b.Run(fmt.Sprintf("%sbatch=%d", name, batch), func(b *testing.B) { bench(b, load) })
			}
		}
		load := load{batch: 200, order: order, duplicates: 1, failEvery: 200}
		b.Run(fmt.Sprintf("%s/failures=0.5%%/batch=200", order), func(b *testing.B) { bench(b, load) })
	}
}

type load struct {
	batch                 int
	order                 inbox.Order
	duplicates, failEvery int
}

type stream struct {
	redeliver int // percent
	n         int
	versions  map[string]int64
	past      []event.Event
}

func (s *stream) next() event.Event {
	s.n++
	if len(s.past) >= 1000 && s.n%100 < s.redeliver {
		return s.past[s.n%1000]
	}
	key := fmt.Sprintf("key-%04d", s.n%1000)
	s.versions[key]++
	e := event.Event{
		ID: uuid.Must(uuid.NewV7()).String(), Source: "/bench", Type: testType, Key: key, Version: s.versions[key],
		Time: time.Now(), Data: fmt.Appendf(nil, `{"value":"%d %0200d"}`, s.n, 0),
	}
	if len(s.past) < 1000 {
		s.past = append(s.past, e)
	}
	return e
}

func prepare(
	b *testing.B, redeliver int, handle func(*pgxpool.Pool, []*message.Message),
) (*pgxpool.Pool, []*message.Message) {
	b.Helper()
	pool := pgtest.New(b, migrations.Inbox, migrations.Audit)
	if _, err := pool.Exec(b.Context(), `create table effect (event_id text, value text)`); err != nil {
		b.Fatal(err)
	}
	s := &stream{redeliver: redeliver, versions: map[string]int64{}}
	messages := func(n int) []*message.Message {
		msgs := make([]*message.Message, n)
		for i := range msgs {
			e := s.next()
			msgs[i] = e.Message()
			msgs[i].SetContext(event.WithOrigin(b.Context(), event.Origin{
				Group: "bench.group", Topic: "bench", Partition: 1, Offset: int64(s.n), Time: e.Time, Key: []byte(e.Key),
			}))
		}
		return msgs
	}
	handle(pool, messages(1000))
	return pool, messages(b.N)
}

func bench(b *testing.B, l load) {
	run := func(pool *pgxpool.Pool, msgs []*message.Message) {
		bad := map[string]bool{}
		for i := l.failEvery / 2; l.failEvery > 0 && i < len(msgs); i += l.failEvery {
			bad[msgs[i].UUID] = true
		}
		mux := muxOf(func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
			if bad[e.ID] {
				return inbox.Permanent(errors.New("never"))
			}
			return inbox.Queue(ctx, tx, insertEffect, e.ID, data.Value)
		})
		in, err := inbox.New(inbox.Config{
			Consumer: "bench", Pool: pool, Batch: l.batch, Order: l.order, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			b.Fatal(err)
		}
		handle := in.BatchMiddleware(mux.HandleMessage)
		for len(msgs) > 0 {
			n := min(l.batch, len(msgs))
			if _, err := handle(b.Context(), msgs[:n]); err != nil {
				b.Fatal(err)
			}
			msgs = msgs[n:]
		}
		if err := in.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	pool, msgs := prepare(b, l.duplicates, run)
	measured(b, func() { run(pool, msgs) })
}

const insertEffect = `insert into effect (event_id, value) values ($1, $2)`

func measured(b *testing.B, run func()) {
	b.ReportAllocs()
	b.ResetTimer()
	run()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
