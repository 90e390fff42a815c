package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"example.com/twinbox/internal/domain"
)

// line is the way from a signup in one service to the inbox of the other: relay, broker and consumer included. Both
// implementations run under the same load, so what is measured differs in nothing but them.
type line interface {
	// signUp runs one signup to the return of its commit and says who it was.
	signUp(ctx context.Context, who person) (domain.UserID, error)
	// run passes on and consumes until ctx ends, then returns nil.
	run(ctx context.Context) error
	// verify says what became of the signups that were answered, when all of them have arrived and it still runs.
	verify(ctx context.Context) error
	close() error
}

// lineConfig is what a line is built on. Its databases are migrated, each to its service's schema.
type lineConfig struct {
	customer, notification *database
	brokers                []string
	environment            string        // keeps its consumer group apart from other runs'
	poll                   time.Duration // of stock's outbox
	// arrived is called after each commit of the consumer's transaction, with every user whose mail it stored.
	arrived func(domain.UserID)
}

// person is who signs up, checked as the API would.
type person struct {
	key   string // of idempotency
	email domain.Email
	name  domain.Name
}

func newPerson(n int) (p person, err error) {
	p.key = fmt.Sprintf("path-%d", n)
	if p.email, err = domain.ParseEmail(fmt.Sprintf("member-%d@example.org", n)); err != nil {
		return p, err
	}
	p.name, err = domain.ParseName("Ada Lovelace")
	return p, err
}

// arrivals notes when each user's event was committed at the consumer.
type arrivals struct {
	mu    sync.Mutex
	at    map[domain.UserID]time.Time
	want  int
	there chan struct{} // closed when as many as wanted are there
}

func newArrivals() *arrivals { return &arrivals{at: map[domain.UserID]time.Time{}} }

func (a *arrivals) note(user domain.UserID) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.at[user]; known {
		return
	}
	a.at[user] = now
	if a.there != nil && len(a.at) == a.want {
		close(a.there)
		a.there = nil
	}
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.at)
}

func (a *arrivals) of(user domain.UserID) (at time.Time, arrived bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, arrived = a.at[user]
	return at, arrived
}

// await returns when n users have arrived since the line was opened. It has one caller at a time.
func (a *arrivals) await(ctx context.Context, n int) error {
	a.mu.Lock()
	if len(a.at) >= n {
		a.mu.Unlock()
		return nil
	}
	there := make(chan struct{})
	a.want, a.there = n, there
	a.mu.Unlock()
	select {
	case <-there:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d of %d signups arrived: %w", a.count(), n, context.Cause(ctx))
	}
}
