package failure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"
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

// MaxText is the longest text of an error, in bytes, that is logged or stored. Errors quote what servers answer and
// what records hold, which is as long as the other side likes.
const MaxText = 2048

// Brief returns the text if it is at most [MaxText] long, else its beginning and how much is missing.
func Brief(text string) string { return Cut(text, MaxText) }

// Cut is [Brief] with another limit; what it adds comes on top.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s... (%d bytes more)", strings.Clone(text[:end]), len(text)-end)
}
