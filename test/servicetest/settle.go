package servicetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox/relay"
)

const lookEvery = 10 * time.Millisecond

// Settle returns when everything committed is published and handled, no effect is due, and no scheduled event is
// overdue. Work that waits for a later time (see [pgtest.Advance]), for an operator or for a missing event is not
// pending. After [testkit.WaitLimit] the test fails with the pending work, and also if an event was given up, unless
// the system allows it. Settle takes half a second, after which a consumer group commits.
func (s *System) Settle() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.limit)
	defer cancel()
	var last []string // of the last complete look, or the error if there was none
	answered := false
	for _, p := range s.parts { // the test's own commits do not wake the relay
		_, err := p.pool.Exec(ctx, `select pg_notify('outbox', '')`)
		require.NoError(s.t, err, "wake the relay of %s", p.name)
	}
	for {
		busy, err := s.settled(ctx)
		switch {
		case err == nil && len(busy) == 0:
			if !s.AllowsDeadLetters {
				s.requireNoDeadLetters(ctx)
			}
			return
		case err == nil:
			last, answered = busy, true
		case !answered: // such as a topic without a leader; later the time may have run out
			last = []string{err.Error()}
		}
		if failure.Sleep(ctx, lookEvery) != nil {
			s.t.Fatalf("not settled after %s; under way:\n  %s", s.limit, strings.Join(last, "\n  "))
		}
	}
}

const selectGivenUp = `
select format('%s: %s: %s', consumer, event_type, error) from public.dead_letter
where state = 'waiting' and class <> 'parked' order by id limit 5`

func (s *System) requireNoDeadLetters(ctx context.Context) {
	s.t.Helper()
	for _, p := range s.parts {
		letters, err := p.list(ctx, selectGivenUp)
		require.NoError(s.t, err, "read dead letters of %s", p.name)
		if len(letters) > 0 {
			s.t.Fatalf("%s has dead letters (see AllowsDeadLetters):\n  %s", p.name, strings.Join(letters, "\n  "))
		}
	}
}

// settled looks twice and compares the outboxes: an event can move to a station that one look has passed.
func (s *System) settled(ctx context.Context) (busy []string, err error) {
	if busy, err = s.look(ctx); err != nil || len(busy) > 0 {
		return busy, err
	}
	before := s.heads()
	busy, err = s.look(ctx)
	if err == nil && len(busy) == 0 && before != s.heads() {
		busy = []string{"events were added to an outbox just now"}
	}
	return busy, err
}

func (s *System) heads() (sum int64) {
	for _, p := range s.parts {
		sum += p.head
	}
	return sum
}

// look reads the stations in the order of an event.
func (s *System) look(ctx context.Context) (busy []string, err error) {
	for _, station := range []func(context.Context, *part) ([]string, error){
		lookAtOutbox, lookAtConsumers, lookAtParked, lookAtEffects,
	} {
		for _, p := range s.parts {
			found, err := station(ctx, p)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			for _, what := range found {
				busy = append(busy, p.name+": "+what)
			}
		}
	}
	return busy, nil
}

// A record that the broker refuses for good waits for an operator.
const selectHeldBack = `
select format('%s keys of the outbox are held back and tried again', count(*)) from public.outbox_parked
where not permanent having count(*) > 0`

func lookAtOutbox(ctx context.Context, p *part) (busy []string, err error) {
	status, err := relay.ReadStatus(ctx, p.pool)
	if err != nil {
		return nil, err
	}
	p.head = status.Head
	if status.Waiting > 0 {
		busy = append(busy, fmt.Sprintf("%d events wait in the outbox", status.Waiting))
	}
	if status.OverdueSeconds > 0 {
		busy = append(busy, "a scheduled event is due")
	}
	heldBack, err := p.list(ctx, selectHeldBack)
	return append(busy, heldBack...), err
}

func lookAtConsumers(ctx context.Context, p *part) (busy []string, err error) {
	for _, c := range p.consumers {
		lags, err := kafka.ReadLag(ctx, p.instance.Client("test"), p.instance.Shared().Group(c.Name), c.Topic, nil)
		if err != nil {
			return nil, err
		}
		for _, lag := range lags {
			if lag.Records > 0 {
				busy = append(busy, fmt.Sprintf("%s has %d records of %s/%d before it", c.Name, lag.Records, lag.Topic,
					lag.Partition))
			}
		}
	}
	return busy, nil
}

// selectResumable counts keys that the consumer resumes within seconds.
const selectResumable = `
select format('%s keys have parked events that can be resumed', count(*)) from public.inbox_key k
cross join lateral (select class, version from public.dead_letter
    where consumer = k.consumer and key_start = convert_to(k.key, 'UTF8') and state = 'waiting' and holds
    order by version, id limit 1) d
where k.parked_from is not null and d.class = 'parked' and d.version <= k.version + 1
having count(*) > 0`

func lookAtParked(ctx context.Context, p *part) (busy []string, err error) {
	return p.list(ctx, selectResumable)
}

const selectEffects = `
select format('%s effects of %s are %s', count(*), handler, state) from public.lease
where state in ('claimed', 'submitting') or state = 'pending' and due_at <= clock_timestamp()
group by handler, state order by handler, state`

func lookAtEffects(ctx context.Context, p *part) (busy []string, err error) {
	if !p.hasLeases {
		return nil, nil
	}
	return p.list(ctx, selectEffects)
}

func (p *part) list(ctx context.Context, sql string) ([]string, error) {
	rows, _ := p.pool.Query(ctx, sql)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
