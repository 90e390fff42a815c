package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/twinbox/internal/failure"
)

// errDone means that the id had its effect before.
var errDone = errors.New("done before")

// claim returns the claim's revision, or errDone. Each decision is a conditional write: a read may return old data.
func (c *call) claim(ctx context.Context) (uint64, error) {
	backoff := c.backoff()
	var other uint64 // the revision of another process's claim
	var since time.Time
	for {
		revision, err := c.put(ctx, "claim", began, 0)
		if !errors.Is(err, ErrRevision) {
			return revision, err
		}
		entry, note, err := c.get(ctx)
		switch {
		case errors.Is(err, ErrNotFound): // released, or a replica does not know it yet
		case err != nil:
			return 0, err
		case note.state == done:
			c.cache.add(c.digest, c.inAge(entry))
			return 0, errDone
		case note.life == c.life, // of a failed call in this process, see twins
			note.owner == c.cfg.Owner, entry.Revision == other && time.Since(since) >= c.cfg.patience():
			revision, err := c.put(ctx, "take over", began, entry.Revision)
			if errors.Is(err, ErrRevision) {
				break
			}
			if note.life != c.life {
				c.possible("crash")
			}
			return revision, err
		case entry.Revision != other:
			other, since = entry.Revision, time.Now()
		}
		if err := failure.Sleep(ctx, backoff.Next()); err != nil {
			return 0, fmt.Errorf("wait for the claim: %w", err)
		}
	}
}

// A store's clock that is ahead makes no entry younger.
func (c *call) inAge(entry Entry) time.Time {
	return time.Now().Add(-max(0, time.Since(entry.Created)))
}

func (c *call) release(ctx context.Context, revision uint64) {
	_ = c.ask(context.WithoutCancel(ctx), "release", func(ctx context.Context) error {
		return c.store.Delete(ctx, c.key, revision)
	})
}

func (c *call) put(ctx context.Context, question string, s state, over uint64) (revision uint64, err error) {
	err = c.ask(ctx, question, func(ctx context.Context) (err error) {
		revision, err = c.store.Put(ctx, c.key, note{s, c.life, c.cfg.Owner}.value(), over)
		return err
	})
	return revision, err
}

func (c *call) get(ctx context.Context) (entry Entry, read note, err error) {
	err = c.ask(ctx, "look", func(ctx context.Context) (err error) {
		if entry, err = c.store.Get(ctx, c.key); err == nil {
			read, err = readNote(entry.Value)
		}
		return err
	})
	return entry, read, err
}
