package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/verify"
)

// Our line is not judged by its own counters: what the services cannot verify is no result.
func TestOurLineIsJudgedByItsServices(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st, err := openStage(ctx, options{Dir: t.TempDir()}.stage(streams{err: new(bytes.Buffer)}, false))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.close()) })
	b := &pathBench{stage: st, plan: pathPlan{Warm: 3}}
	require.NoError(t, b.prepare(ctx))
	err = b.withLine(ctx, 0, func(ctx context.Context, l *openLine) error {
		_, err := l.pass(ctx, make([]time.Duration, 5), drainLimit)
		for _, damage := range []string{
			`delete from inbox where event_id = (select min(event_id) from inbox)`,
			`update inbox_horizon set remembers_from = clock_timestamp() + interval '1 hour'`,
		} {
			execute(t, l.line.(*ourLine).cfg.notification, damage)
		}
		return err
	})
	require.ErrorContains(t, err, "1 of notification.users not verifiable: "+string(verify.InboxForgot))
}
