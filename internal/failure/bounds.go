package failure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"
)

// Backoff returns pauses: Min, then twice the last one, up to Max. Each varies by up to a fifth.
type Backoff struct {
	Min, Max time.Duration

	pause time.Duration
}

// Reset makes Min the next pause. Call it after a success.
func (b *Backoff) Reset() { b.pause = 0 }

// Began reports whether there was a pause since the last [Backoff.Reset].
func (b *Backoff) Began() bool { return b.pause > 0 }

// Next returns the pause before the next attempt.
func (b *Backoff) Next() time.Duration {
	b.pause = min(max(2*b.pause, b.Min), b.Max)
	return time.Duration(float64(b.pause) * (0.8 + 0.4*rand.Float64()))
}

// Sleep waits for d. If ctx ends first, it returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// MaxText bounds an error's text in logs and tables, in bytes.
const MaxText = 2048

// Brief shortens a text to [MaxText] bytes and appends the number of missing bytes. The result is storable: see [Text].
func Brief(text string) string { return Cut(text, MaxText) }

// Text makes a text storable: PostgreSQL refuses NUL and invalid UTF-8.
func Text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Cut is [Brief] with another limit. The note is not counted.
func Cut(text string, limit int) string {
	text = Text(text)
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s... (%d bytes more)", strings.Clone(text[:end]), len(text)-end)
}
