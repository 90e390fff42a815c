package eventing

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/engine/kafka/progress"
)

// inboxHost is what a consumer's inbox knows of the process: its dependencies, its outbox and the partition's loop.
type inboxHost struct {
	*consumer
	node *Node
}

// Pause implements [inbox.Host]. A pause is no stall of the partition, however long the database is away.
func (h inboxHost) Pause(ctx context.Context, failure error, d time.Duration) error {
	defer progress.Pausing(ctx, failure)() // part: standing
	if d == 0 {
		return nil
	}
	if err := h.node.dependencies.wait(ctx, failure, d); err != nil {
		return err
	}
	if err := awaitResume(ctx, h.gate); err != nil { // part: ops, begin
		return err // what an operator paused is not tried again either
	} // part: ops, end
	return nil
}

// Handled implements [inbox.Host].
func (h inboxHost) Handled(event cloudevent.Event, outcome inbox.Outcome) {
	if h.OnOutcome != nil {
		h.OnOutcome(event, outcome)
	}
}

// CopyDeadLetter implements [inbox.Host].
func (h inboxHost) CopyDeadLetter(ctx context.Context, tx pgx.Tx, letter deadletter.Letter) error {
	return h.node.copies.write(ctx, tx, letter)
}
