package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/deadletter"
)

// Handlers say which events a consumer handles. A [*Mux] does.
type Handlers interface {
	// Accepts reports whether there is a handler for the type. Events of other types are acknowledged and counted as
	// ignored.
	Accepts(eventType string) bool
	// OnGap is the policy of a type that has one of its own; "" stands for [Config.OnGap].
	OnGap(eventType string) GapPolicy
}

// anyHandler accepts every event.
type anyHandler struct{}

func (anyHandler) Accepts(string) bool    { return true }
func (anyHandler) OnGap(string) GapPolicy { return "" }

// Host is the program around the inbox: what the inbox tells it, and asks of it. Embed [Standalone] for what does not
// matter. All methods are called from several goroutines at once.
type Host interface {
	// Pause is how a delivery waits for its next attempt, after the failure given (nil: for its predecessor): for d, or
	// less if what it waits for is back earlier, or more while it is known to be gone. It returns an error only when ctx,
	// the delivery's, has ended.
	//
	// With a d of 0 it must not wait: then it hears of the failure of a batch, whose events run one by one next, and, as
	// nil, of each event and batch that went well.
	Pause(ctx context.Context, failure error, d time.Duration) error
	// Handled is told the outcome of each delivery, once its transaction has ended, in the goroutine that handled it: to
	// wake what works on what was just committed. It must not block.
	Handled(event cloudevent.Event, outcome Outcome)
	// CopyDeadLetter is called once for each record that is given up, in the transaction that files it, to write a copy
	// for other tools, say to an outbox. Its error is the database's: the transaction is rolled back and tried again for
	// as long as it takes. Parked records are not given up.
	CopyDeadLetter(ctx context.Context, tx pgx.Tx, letter deadletter.Letter) error
}

// Standalone is the Host of an inbox that tells nothing: it waits by a timer and writes no copies.
type Standalone struct{}

// Pause implements [Host].
func (Standalone) Pause(ctx context.Context, _ error, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for retry: %w", context.Cause(ctx))
	}
}

// Handled implements [Host].
func (Standalone) Handled(cloudevent.Event, Outcome) {}

// CopyDeadLetter implements [Host].
func (Standalone) CopyDeadLetter(context.Context, pgx.Tx, deadletter.Letter) error { return nil }
