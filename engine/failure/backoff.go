package failure

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff gives the pauses between attempts: the first is Min, each is twice the one before, up to Max, and each is up
// to a fifth shorter or longer, so that callers that failed together do not retry together.
type Backoff struct {
	Min, Max time.Duration

	pause time.Duration
}

// Reset says that an attempt went well: the next pause is Min again.
func (b *Backoff) Reset() { b.pause = 0 }

// Began says whether there was a pause since the last attempt that went well.
func (b *Backoff) Began() bool { return b.pause > 0 }

// Next is the pause before the next attempt.
func (b *Backoff) Next() time.Duration {
	b.pause = min(max(2*b.pause, b.Min), b.Max)
	return time.Duration(float64(b.pause) * (0.8 + 0.4*rand.Float64()))
}

// Sleep waits for d, or until ctx ends: then it returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
