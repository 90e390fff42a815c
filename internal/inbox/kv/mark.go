package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/twinbox/internal/failure"
)

// mark tries for as long as ctx lasts: without a mark the effect happens again. The first attempt is made even if ctx
// has ended.
func (c *call) mark(ctx context.Context, revision uint64) (Outcome, error) {
	backoff := c.backoff()
	for {
		outcome, err := c.markOnce(ctx, revision)
		if err == nil {
			return outcome, nil
		}
		if c.cfg.OnOutage == Apply {
			c.possible("outage")
			return Applied, nil
		}
		if stopped := pause(ctx, backoff.Next()); stopped != nil {
			c.twins.leaveUnmarked(c.digest, revision)
			c.possible("unmarked")
			return Failed, fmt.Errorf("remember event: %w: %w", stopped, err)
		}
	}
}

// markOnce writes over the claim with that revision, 0 for none. A claim that is gone was taken over, or marked with a
// lost answer, or forgotten: what is there now tells.
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

// errReplica says that what is read is not what a write finds.
var errReplica = failure.AsTransient(fmt.Errorf("mark: %w: its reads are behind its writes", ErrUnavailable))
