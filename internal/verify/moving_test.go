package verify_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/outboxtest"
)

var runs = flag.Int("verify.runs", 5, "verifications of a system that moves")

// Each verification reads everything since the start, so the run of one system is bounded.
const perSystem = 20

// Producers, relays, consumers, retention and operators work during every verification.
func TestNoFindingWhileEverythingMoves(t *testing.T) {
	t.Parallel()
	for left := *runs; left > 0; left -= perSystem {
		t.Run(strconv.Itoa(left), func(t *testing.T) { verifyWhileMoving(t, min(left, perSystem)) })
	}
}

func verifyWhileMoving(t *testing.T, runs int) {
	t.Helper()
	s := newSystem(t, outboxtest.SmallPartitions)
	s.mux = inbox.NewMux()
	inbox.Handle(s.mux, inboxtest.Event, func(_ context.Context, _ pgx.Tx, e event.Event, _ inboxtest.Data) error {
		if e.Version%7 == 0 {
			return inbox.Permanent(errors.New("no event of this version"))
		}
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	movers, moving := errgroup.WithContext(ctx)
	publisher := kafkatest.NewPublisher(t, s.brokers)
	for _, move := range []func(context.Context) error{
		s.write, s.write,
		func(ctx context.Context) error { return s.relayInTurns(ctx, t, publisher) },
		func(ctx context.Context) error { return s.republish(ctx, publisher) },
		func(ctx context.Context) error { return s.consumeInLeaps(ctx, t, consumer) },
		func(ctx context.Context) error { return s.consumeInLeaps(ctx, t, unordered) },
	} {
		movers.Go(func() error {
			for moving.Err() == nil {
				if err := move(moving); err != nil && moving.Err() == nil {
					return err
				}
			}
			return nil
		})
	}
	var checked int64
	for n := 0; n < runs || checked == 0; n++ { // on a busy machine nothing may be published at first
		verdict := s.verify(t)
		requireClean(t, verdict)
		checked = max(checked, verdict.Produced[0].Published)
	}
	stop()
	require.NoError(t, movers.Wait())
	require.NoError(t, publisher.Close())
	t.Logf("%d events, %d verifications", checked, runs)
	s.publish(t)
	requireClean(t, s.verify(t))
}

func pause(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(rand.N(most))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (s *system) write(ctx context.Context) error {
	pause(ctx, 5*time.Millisecond)
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		key := keysOf(20)[rand.N(20)]
		_, err := s.outbox.Add(ctx, tx, event.Event{
			Type: inboxtest.Type, Topic: s.topic, Key: key, Data: []byte(`{"value":"` + key + `"}`),
		})
		pause(ctx, 5*time.Millisecond)
		return err
	})
	if refused, is := errors.AsType[*pgconn.PgError](err); is && refused.Code == "23514" {
		return nil // the next table partition is not there yet
	}
	return err
}

type withoutLog struct{ message.Publisher }

// relayInTurns ends the relay at any point: its successor sends again what it did not record.
func (s *system) relayInTurns(ctx context.Context, t *testing.T, publisher *kafka.Publisher) error {
	r, err := relay.New(relay.Config{
		Connect: outboxtest.Dial(t, s.pool), Publisher: withoutLog{publisher}, PollMax: 10 * time.Millisecond,
		Retention: time.Hour, PartitionSize: 50,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rand.N(300*time.Millisecond))
	defer cancel()
	return r.Run(ctx)
}

func (s *system) republish(ctx context.Context, publisher *kafka.Publisher) error {
	pause(ctx, 300*time.Millisecond)
	_, err := s.pool.Exec(ctx, `update outbox_partition set published_at = published_at - interval '2 hours'`)
	if err != nil {
		return err
	}
	_, err = relay.Republish(ctx, s.pool, publisher, relay.Selection{Key: keysOf(20)[rand.N(20)]})
	return err
}

func (s *system) consumeInLeaps(ctx context.Context, t *testing.T, name string) error {
	handle := s.inboxes[name].Middleware(s.mux.HandleMessage)
	next := map[int32]int64{}
	for ctx.Err() == nil {
		ends, err := s.ends(ctx)
		if err != nil {
			return err
		}
		for p := range int32(partitions) {
			from := max(0, next[p]-rand.Int64N(5))
			to := min(ends[p], from+rand.Int64N(40))
			batch, err := s.scan(ctx, p, from, to)
			if err != nil {
				return err
			}
			for _, m := range batch {
				if _, err := handle(m); err != nil {
					return err
				}
			}
			next[p] = max(next[p], to)
		}
		if ctx.Err() == nil {
			if err := s.commitOffsets(name, next); err != nil {
				return err
			}
		}
	}
	return nil
}
