package crashtest

import (
	"context"
	"sync/atomic"

	"example.com/twinbox/test/testkit"
)

// Statement names a statement, or a batch, that a process sends to PostgreSQL, and on which side of it the process
// dies.
type Statement struct {
	Nth   int  // counted from 1 over all connections; 0: none
	After bool // after the answer; false: before the statement is sent
}

type dueKey struct{}

// Tracer returns the tracer for the connections of the process that dies.
func (s Statement) Tracer() testkit.Tracer {
	sent := new(atomic.Int64)
	return testkit.Tracer{
		Begin: func(ctx context.Context) context.Context {
			if sent.Add(1) != int64(s.Nth) {
				return ctx
			}
			if !s.After {
				Die()
			}
			return context.WithValue(ctx, dueKey{}, true)
		},
		End: func(ctx context.Context) {
			if ctx.Value(dueKey{}) != nil {
				Die()
			}
		},
	}
}
