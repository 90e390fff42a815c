package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/contract"
)

// sighting is when one signup was seen, and where. A zero time: not yet.
type sighting struct {
	begun     time.Time // the request was sent
	published time.Time // the record was read from the topic
	partition int32
	taken     time.Time // the row was read from the inbox of Notification
}

// watch sees every signup on the topic and in the inbox, from outside of the services.
type watch struct {
	db     *database
	client sarama.Client
	cancel context.CancelFunc
	group  *errgroup.Group

	mu     sync.Mutex
	users  map[string]*sighting // by user
	events map[string]*sighting // by event
	early  map[string]time.Time // events in the inbox whose record has not been read yet
}

// openWatch begins at the end of the topic.
func openWatch(ctx context.Context, brokers []string, db *database) (*watch, error) {
	client, err := sarama.NewClient(brokers, readerConfig())
	if err != nil {
		return nil, fmt.Errorf("connect to brokers: %w", err)
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make consumer: %w", err), client.Close())
	}
	w := &watch{
		db: db, client: client, users: map[string]*sighting{}, events: map[string]*sighting{}, early: map[string]time.Time{},
	}
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.group, ctx = errgroup.WithContext(ctx)
	for p := range int32(partitions) {
		reader, err := consumer.ConsumePartition(contract.TopicUsers, p, sarama.OffsetNewest)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read topic: %w", err), w.close())
		}
		w.group.Go(func() error { return w.read(ctx, reader) })
	}
	w.group.Go(func() error { return w.look(ctx) })
	return w, nil
}

func (w *watch) read(ctx context.Context, reader sarama.PartitionConsumer) error {
	defer func() { _ = reader.Close() }()
	for {
		select {
		case r := <-reader.Messages():
			w.published(string(r.Key), idOf(r), r.Partition)
		case <-ctx.Done():
			return nil
		}
	}
}

func (w *watch) published(user, event string, partition int32) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.user(user)
	if !s.published.IsZero() {
		return // sent twice
	}
	s.published, s.partition = now, partition
	s.taken = w.early[event]
	delete(w.early, event)
	w.events[event] = s
}

// user is the sighting of a user; the record may be seen before the signup's answer.
func (w *watch) user(id string) *sighting {
	if w.users[id] == nil {
		w.users[id] = &sighting{}
	}
	return w.users[id]
}

func (w *watch) begun(user string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.user(user).begun = at
}

// lookEvery is how exact the time of a row in the inbox is; overlap is how much is read again, for transactions that
// were committed in another order than they began.
const (
	lookEvery = 10 * time.Millisecond
	overlap   = 2 * time.Second
)

const inboxSQL = `
select event_id, processed_at from public.inbox
where consumer = 'notification.users' and processed_at > $1`

// look reads the inbox for as long as there is load.
func (w *watch) look(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var newest time.Time
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if !w.waits() {
			continue
		}
		rows, err := w.db.Query(ctx, inboxSQL, newest.Add(-overlap))
		if err == nil {
			var event string
			var at time.Time
			_, err = pgx.ForEachRow(rows, []any{&event, &at}, func() error {
				w.taken(event)
				if at.After(newest) {
					newest = at
				}
				return nil
			})
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("read inbox: %w", err)
		}
	}
}

// waits reports whether there is a signup that is not in the inbox. At rest the database is left alone.
func (w *watch) waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.users {
		if s.taken.IsZero() {
			return true
		}
	}
	return false
}

func (w *watch) taken(event string) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.events[event]
	if s == nil {
		if _, known := w.early[event]; !known {
			w.early[event] = now
		}
		return
	}
	if s.taken.IsZero() {
		s.taken = now
	}
}

// forget starts over; between two measurements nothing waits.
func (w *watch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.users)
	clear(w.events)
	clear(w.early)
}

// await returns when what is seen fulfils a condition.
func (w *watch) await(ctx context.Context, what string, is func(map[string]*sighting) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, fmt.Errorf("waited %s for %s", readyLimit, what))
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		w.mu.Lock()
		done := is(w.users)
		w.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// awaitAll returns when every signup is in the inbox: nothing was lost.
func (w *watch) awaitAll(ctx context.Context) error {
	return w.await(ctx, "all signups in the inbox", func(users map[string]*sighting) bool {
		for _, s := range users {
			if s.taken.IsZero() {
				return false
			}
		}
		return true
	})
}

func (w *watch) close() error {
	w.cancel()
	return errors.Join(w.group.Wait(), w.client.Close())
}
