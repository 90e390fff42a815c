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

// claim returns the claim's revision, or errDone.
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
		case note.life == c.life, // of a failed call in this process, see calls
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

// mark remembers the effect. It tries until ctx ends, and at first regardless of ctx: without a mark the effect happens
// again.
func (c *call) mark(ctx context.Context, revision uint64) (Outcome, error) {
	backoff, asking := c.backoff(), context.WithoutCancel(ctx)
	for {
		since := time.Now()
		_, err := c.put(asking, "mark", done, revision)
		if errors.Is(err, ErrRevision) {
			// The claim was taken over, or an unanswered write has marked it, or it is forgotten.
			entry, note, found := c.get(asking)
			switch {
			case errors.Is(found, ErrNotFound):
				revision = 0
			case found != nil:
				err = found
			case note.life != c.life:
				c.possible("late")
				return Duplicate, nil
			case note.state == done:
				err = nil
			default:
				revision = entry.Revision
			}
		}
		if err == nil {
			c.cache.add(c.digest, since)
			return Applied, nil
		}
		if stopped := failure.Sleep(ctx, backoff.Next()); stopped != nil {
			c.calls.leaveUnmarked(c.digest, revision)
			c.possible("unmarked")
			return Failed, fmt.Errorf("remember event: %w: %w", stopped, err)
		}
	}
}

// possible counts a possible second effect.
func (c *call) possible(cause string) {
	c.metrics.seconds.WithLabelValues(c.consumer, cause).Inc()
	c.cfg.Log.Warn("second effect possible", "consumer", c.consumer, "event_id", c.id, "cause", cause)
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

// The error is one of the store's answers, or transient.
func (c *call) ask(ctx context.Context, question string, of func(context.Context) error) error {
	asking, cancel := context.WithTimeout(ctx, c.cfg.StoreTimeout)
	defer cancel()
	err := of(asking)
	if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrRevision) {
		if c.away.CompareAndSwap(true, false) {
			c.cfg.Log.Info("inbox store is back")
		}
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", question, context.Cause(ctx))
	}
	c.metrics.errors.WithLabelValues(c.consumer, question).Inc()
	if c.away.CompareAndSwap(false, true) {
		c.cfg.Log.Warn("inbox store does not answer", "question", question, "error", err)
	}
	return failure.AsTransient(fmt.Errorf("%s: %w: %w", question, ErrUnavailable, err))
}

func (in *Inbox) backoff() *failure.Backoff {
	return &failure.Backoff{Min: in.cfg.retryMin, Max: in.cfg.retryMax}
}
