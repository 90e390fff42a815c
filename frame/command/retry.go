package command

import (
	"context"
	"errors"
	"time"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/outbox"
)

// The pauses between the attempts of [Retry]. The race was lost to a transaction that has committed, so the next
// attempt may come at once; the pause parts those that lost together.
const (
	firstPause   = 2 * time.Millisecond
	longestPause = 100 * time.Millisecond
)

// Retry runs a command that holds no lock while it decides, and runs it again when it lost the race for its
// aggregate's next version ([outbox.ErrVersionConflict]), at most attempts times in all. do is the whole command: it
// begins a transaction of its own, reads the aggregate and decides anew, since what it decided before rests on an old
// state.
//
// It is for commands whose caller has not seen a version. One that names the version that its caller has seen must not
// be repeated on another one: give it one attempt.
//
// Any other error ends it, and so does ctx. After the last attempt the error is that attempt's, which [Problem] answers
// with 409; nothing of any attempt is stored.
func Retry[T any](ctx context.Context, attempts int, do func(context.Context) (T, error)) (T, error) {
	pauses := failure.Backoff{Min: firstPause, Max: longestPause}
	for {
		result, err := do(ctx)
		attempts--
		if attempts < 1 || !errors.Is(err, outbox.ErrVersionConflict) {
			return result, err
		}
		pause := time.NewTimer(pauses.Next())
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return result, err
		}
	}
}
