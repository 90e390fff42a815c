package eventing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/migrations"
)

// await repeats a check until it passes, and says what it waits for. A check ends it with a [uselessError] when
// waiting would change nothing.
func (n *Node) await(ctx context.Context, what string, check func(context.Context) error) error {
	wait := failure.Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if useless, is := errors.AsType[*uselessError](err); is {
			return fmt.Errorf("check %s: %w", what, useless.err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("check %s: %w", what, context.Cause(ctx))
		}
		n.setup.Log.WarnContext(ctx, "waiting", "for", what, "error", err)
		n.dependencies.report(err)
		timer := time.NewTimer(wait.Next())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("check %s: %w", what, context.Cause(ctx))
		}
	}
}

// uselessError is one that waiting does not change.
type uselessError struct{ err error }

func (e *uselessError) Error() string { return e.err.Error() }
func (e *uselessError) Unwrap() error { return e.err }

// checkSchema asks whether the database answers and has the schema of this build. A database that is down is waited
// for; a schema that does not fit is an error at once.
func (n *Node) checkSchema(ctx context.Context) error {
	err := migrations.Check(ctx, n.Pool, n.setup.Migrations...)
	if _, wrong := errors.AsType[*migrations.SchemaError](err); wrong {
		return &uselessError{err}
	}
	return err
}
