package relay

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
)

// How long TestChaos runs. `make test-long` sets more.
var chaosFor = flag.Duration("outbox.chaos", 2*time.Second, "how long to torture the relay")

func TestChaos(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	c := &chaos{T: t, o: o, pool: pool, ledger: l}
	l.Follow(c.misbehave)

	ctx, cancel := context.WithTimeout(t.Context(), *chaosFor+testTimeout)
	defer cancel()
	var group errgroup.Group
	group.Go(func() error { // a run without a fault proves nothing
		defer cancel()
		for on := sleep(ctx, *chaosFor); on; on = sleep(ctx, 10*time.Millisecond) {
			if c.relays.Load() > 0 && c.ended.Load() > 0 && c.failed.Load() >= misbehaviours {
				break
			}
		}
		return nil
	})
	for w := range 6 {
		rng := rand.New(rand.NewPCG(seed, uint64(w)))
		group.Go(func() error { return c.write(ctx, rng) })
	}
	for n := range 2 {
		rng := rand.New(rand.NewPCG(seed, 100+uint64(n)))
		group.Go(func() error { return c.comeAndGo(ctx, rng) })
	}
	group.Go(func() error { return c.endSessions(ctx) })
	require.NoError(t, group.Wait())

	l.Follow(nil)
	require.NoError(t, c.release())
	startRelay(t, testRelayConfig(t, pool, l))
	committed := int(number(t, pool, `select count(*) from outbox`))
	wire := l.AwaitDistinct(t, committed)
	requireAll(t, pool, wire)
	t.Logf("%d events, %d records, %d relays, %d sessions ended, %d calls failed", committed, len(wire), c.relays.Load(),
		c.ended.Load(), c.failed.Load())
	require.Positive(t, c.relays.Load())
	require.Positive(t, c.ended.Load())
	require.GreaterOrEqual(t, c.failed.Load(), int64(misbehaviours))
	require.Greater(t, len(wire), committed, "one of them is that records are taken and the relay is not told")
}

type chaos struct {
	*testing.T
	o      *outbox.Outbox
	pool   *pgxpool.Pool
	ledger *ledger

	relays, ended, failed atomic.Int64
}

var errUndo = errors.New("undo")

func (c *chaos) write(ctx context.Context, rng *rand.Rand) error {
	for ctx.Err() == nil {
		err := pgx.BeginFunc(c.Context(), c.pool, func(tx pgx.Tx) error {
			if rng.IntN(3) == 0 {
				if _, err := tx.Exec(c.Context(), `select pg_current_xact_id()`); err != nil {
					return err
				}
				c.dawdle(ctx, rng)
			}
			if err := c.add(tx, rng, 1); err != nil {
				return err
			}
			if rng.IntN(4) == 0 {
				undo := []error{nil, errUndo}[rng.IntN(2)]
				err := pgx.BeginFunc(c.Context(), tx, func(inner pgx.Tx) error {
					return errors.Join(c.add(inner, rng, 2), undo)
				})
				if err != nil && !errors.Is(err, errUndo) {
					return err
				}
			}
			c.dawdle(ctx, rng)
			if rng.IntN(10) == 0 {
				return errUndo
			}
			return nil
		})
		if err != nil && !errors.Is(err, errUndo) {
			return fmt.Errorf("write: %w", err)
		}
		c.o.Committed()
	}
	return nil
}

// Transactions use the groups in order, so none deadlocks.
func (c *chaos) add(tx pgx.Tx, rng *rand.Rand, group int) error {
	events := make([]event.Event, 1+rng.IntN(3))
	for i := range events {
		events[i] = newEvent(fmt.Sprintf("k%d-%d", group, rng.IntN(6)))
	}
	_, err := c.o.Add(c.Context(), tx, events...)
	return err
}

func (c *chaos) dawdle(ctx context.Context, rng *rand.Rand) {
	if rng.IntN(5) == 0 {
		sleep(ctx, time.Duration(rng.IntN(60))*time.Millisecond)
	}
}

// A relay may end during a late call: that makes a duplicate.
func (c *chaos) comeAndGo(ctx context.Context, rng *rand.Rand) error {
	p := c.pace()
	for ctx.Err() == nil {
		cfg := testRelayConfig(c.T, c.pool, c.ledger)
		cfg.BatchSize, cfg.attempts = 1+rng.IntN(20), 1+rng.IntN(3)
		cfg.Lease, cfg.PublishTimeout = 200*time.Millisecond<<rng.IntN(4), 100*time.Millisecond
		r, err := New(cfg)
		if err != nil {
			return err
		}
		life, cancel := context.WithTimeout(ctx, p.next(time.Duration(20+rng.IntN(400))*time.Millisecond))
		err = r.Run(life)
		cancel()
		if err != nil && !errors.Is(err, errPublishTimeout) {
			return err
		}
		c.relays.Add(1)
	}
	return nil
}

// pace lengthens times while no record is sent: a slow machine would never reach the broker.
type pace struct {
	*ledger
	calls int
	times time.Duration
}

func (c *chaos) pace() *pace { return &pace{ledger: c.ledger, calls: -1, times: 1} }

func (p *pace) next(d time.Duration) time.Duration {
	calls := p.CallCount()
	if p.times *= 2; calls != p.calls {
		p.times = 1
	}
	p.calls = calls
	return p.times * d
}

func (c *chaos) release() error {
	keys, err := Parked(c.Context(), c.pool, 1000)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := Release(c.Context(), c.pool, k.Topic, k.Key); err != nil && !errors.Is(err, ErrNotParked) {
			return err
		}
	}
	return nil
}

func (c *chaos) endSessions(ctx context.Context) error {
	for p := c.pace(); sleep(ctx, p.next(150*time.Millisecond)); {
		if err := c.release(); err != nil {
			return err
		}
		tag, err := c.pool.Exec(c.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
			where application_name = 'outbox relay' and datname = current_database()`)
		if err != nil {
			return err
		}
		c.ended.Add(tag.RowsAffected())
	}
	return nil
}

const misbehaviours = 4

func (c *chaos) misbehave(call int, topic string, msgs []*message.Message) error {
	if call%4 != 0 {
		return nil
	}
	c.failed.Add(1)
	switch call / 4 % misbehaviours {
	case 0:
		return errors.New("no broker")
	case 1: // taken, but the relay gets an error
		c.ledger.Take(topic, msgs)
		return errors.New("no answer")
	case 2:
		return &partialError{Failed: map[int]error{len(msgs) / 2: errors.New("one partition")}}
	}
	return &partialError{Failed: map[int]error{0: &permanentError{Reason: "not this time"}}}
}
