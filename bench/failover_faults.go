package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// underLoad runs do while one replica of Customer takes signups, and returns when all of them are in the inbox.
func (b *failoverBench) underLoad(ctx context.Context, at *replica, do func(*load) error) error {
	b.stack.watch.forget()
	l := b.stack.startLoad(ctx, b.plan.Rate, at)
	err := pause(ctx, b.plan.Settle)
	if err == nil {
		err = do(l)
	}
	if err = errors.Join(err, l.stop()); err != nil {
		return err
	}
	return b.stack.watch.awaitAll(ctx)
}

// awaitPublished waits for the first record of a signup that was begun after a moment, and returns when it was seen.
func (b *failoverBench) awaitPublished(ctx context.Context, after time.Time) (at time.Time, err error) {
	err = b.stack.watch.await(ctx, "the next record", func(users map[string]*sighting) bool {
		for _, s := range users {
			if s.begun.After(after) && !s.published.IsZero() && (at.IsZero() || s.published.Before(at)) {
				at = s.published
			}
		}
		return !at.IsZero()
	})
	return at, err
}

// again starts a replica that was killed and waits until it works.
func (b *failoverBench) again(ctx context.Context, r *replica) error {
	if err := r.start(); err != nil {
		return err
	}
	return b.stack.awaitReady(ctx)
}

// killLeader measures from kill -9 of the process whose relay leads to the first record of a signup that came later, at
// the other replica.
func (b *failoverBench) killLeader(ctx context.Context) error {
	leads, follows, err := b.stack.leader(ctx)
	if err != nil {
		return err
	}
	err = b.underLoad(ctx, follows, func(*load) error {
		killed, err := leads.kill()
		if err != nil {
			return err
		}
		published, err := b.awaitPublished(ctx, killed)
		if err == nil {
			b.sheet.add("relay.kill", milliseconds(published.Sub(killed)))
		}
		return err
	})
	return errors.Join(err, b.again(ctx, leads))
}

// freezeLeader is the same with a process that is stopped and lives: nothing but its lease tells of it.
func (b *failoverBench) freezeLeader(ctx context.Context) error {
	leads, follows, err := b.stack.leader(ctx)
	if err != nil {
		return err
	}
	err = b.underLoad(ctx, follows, func(*load) error {
		frozen := time.Now()
		if err := leads.signal(syscall.SIGSTOP); err != nil {
			return err
		}
		published, err := b.awaitPublished(ctx, frozen)
		if err == nil {
			b.sheet.add("relay.freeze", milliseconds(published.Sub(frozen)))
		}
		return errors.Join(err, leads.signal(syscall.SIGCONT))
	})
	return errors.Join(err, b.stack.awaitReady(ctx))
}

// restartOnly kills the only replica and starts it again in its place. It measures from the moment at which it answers
// to the first record of a signup that came later.
func (b *failoverBench) restartOnly(ctx context.Context) error {
	leads, follows, err := b.stack.leader(ctx)
	if err != nil {
		return err
	}
	if err := follows.stop(ctx); err != nil {
		return err
	}
	if _, err := leads.kill(); err != nil {
		return err
	}
	if err := leads.start(); err != nil {
		return err
	}
	started := time.Now()
	if err := leads.awaitUp(ctx); err != nil {
		return err
	}
	up := time.Now()
	err = b.underLoad(ctx, leads, func(*load) error {
		published, err := b.awaitPublished(ctx, up)
		if err == nil {
			b.sheet.add("relay.restart", milliseconds(published.Sub(up)))
			b.sheet.add("relay.start", milliseconds(up.Sub(started)))
		}
		return err
	})
	return errors.Join(err, b.again(ctx, follows))
}

// killConsumer kills a replica of Notification and starts it again at once. It measures from the start to the moment at
// which, in each partition, something was taken that was published later than the kill: those of the other replica are
// taken all along, so the last one is of the killed one.
func (b *failoverBench) killConsumer(ctx context.Context) error {
	killed := b.stack.notifiers[b.turn()]
	return b.underLoad(ctx, b.stack.customers[0], func(*load) error {
		if _, err := killed.kill(); err != nil {
			return err
		}
		started := time.Now()
		if err := killed.start(); err != nil {
			return err
		}
		var last time.Time
		err := b.stack.watch.await(ctx, "records of each partition", func(users map[string]*sighting) bool {
			first := map[int32]time.Time{}
			for _, s := range users {
				if s.published.Before(started) || !s.taken.After(started) {
					continue
				}
				if at, known := first[s.partition]; !known || s.taken.Before(at) {
					first[s.partition] = s.taken
				}
			}
			for _, at := range first {
				if at.After(last) {
					last = at
				}
			}
			return len(first) == partitions
		})
		if err == nil {
			b.sheet.add("consumer.kill", milliseconds(last.Sub(started)))
			err = b.stack.awaitReady(ctx)
		}
		return err
	})
}

// turn alternates between the replicas.
func (b *failoverBench) turn() int {
	return len(b.sheet.rounds("consumer.kill")) % len(b.stack.notifiers)
}

// backlogAge is how old a record may be that still counts as just published.
const backlogAge = 500 * time.Millisecond

// penalty measures how long both replicas of Notification take over what has piled up while none of them ran: once
// after kill -9, once after a stop in good order, the same time long, under the same load. The difference is what the
// deaths cost beyond the time without a replica.
func (b *failoverBench) penalty(ctx context.Context) error {
	took := map[string]float64{}
	for _, how := range []string{"stop", "kill"} {
		tell(ctx, "%s", how)
		err := b.underLoad(ctx, b.stack.customers[0], func(*load) (err error) {
			took[how], err = b.drain(ctx, how)
			return err
		})
		if err != nil {
			return fmt.Errorf("backlog after %s: %w", how, err)
		}
		b.sheet.add("backlog."+how, took[how])
	}
	b.sheet.add("backlog.penalty", took["kill"]-took["stop"])
	return nil
}

func (b *failoverBench) drain(ctx context.Context, how string) (seconds float64, err error) {
	began := time.Now()
	for _, r := range b.stack.notifiers {
		if how == "kill" {
			_, err = r.kill()
		} else {
			err = r.stop(ctx)
		}
		if err != nil {
			return 0, err
		}
	}
	if err := pause(ctx, time.Until(began.Add(b.plan.Outage))); err != nil {
		return 0, err
	}
	started := time.Now()
	for _, r := range b.stack.notifiers {
		if err := r.start(); err != nil {
			return 0, err
		}
	}
	err = b.stack.watch.await(ctx, "the end of the backlog", func(users map[string]*sighting) bool {
		for _, s := range users {
			if s.taken.IsZero() && !s.published.IsZero() && time.Since(s.published) > backlogAge {
				return false
			}
		}
		return true
	})
	seconds = time.Since(started).Seconds()
	if err == nil {
		err = b.stack.awaitReady(ctx)
	}
	return seconds, err
}

// pause waits, or less if ctx ends.
func pause(ctx context.Context, d time.Duration) error { return sleepUntil(ctx, time.Now().Add(d)) }
