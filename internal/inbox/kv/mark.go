package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/twinbox/internal/failure"
)

// mark tries until ctx ends. The first attempt ignores ctx: without a mark the effect happens again.
func (c *call) mark(ctx context.Context, revision uint64) (Outcome, error) {
	backoff := c.backoff()
	for {
		outcome, err := c.markOnce(ctx, revision)
		if err == nil {
			return outcome, nil
		}
		if stopped := failure.Sleep(ctx, backoff.Next()); stopped != nil {
			c.twins.leaveUnmarked(c.digest, revision)
			c.possible("unmarked")
			return Failed, fmt.Errorf("remember event: %w: %w", stopped, err)
		}
	}
}

// A missing claim was taken over, was marked by an unanswered write, or is forgotten.
func (c *call) markOnce(ctx context.Context, revision uint64) (Outcome, error) {
	ctx = context.WithoutCancel(ctx)
	for range 3 {
		since := time.Now()
		_, err := c.put(ctx, "mark", done, revision)
		if err == nil {
			c.cache.add(c.digest, since)
			return Applied, nil
		}
		if !errors.Is(err, ErrRevision) {
			return Failed, err
		}
		entry, note, err := c.get(ctx)
		switch {
		case errors.Is(err, ErrNotFound):
			revision = 0
		case err != nil:
			return Failed, err
		case note.life != c.life:
			c.possible("late")
			return Duplicate, nil
		case note.state == done:
			c.cache.add(c.digest, since)
			return Applied, nil
		default:
			revision = entry.Revision
		}
	}
	return Failed, errReplica
}

// errReplica means that a read and a write disagree.
var errReplica = failure.AsTransient(fmt.Errorf("mark: %w: its reads are behind its writes", ErrUnavailable))
