package inbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func TestAHandlerOfAnotherEventsStructDoesNotCompile(t *testing.T) {
	t.Parallel()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, "./testdata/mismatch")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as most builds, so the compiled packages are there
	said, err := build.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "data placed")
	require.Contains(t, string(said), "shipped")
	require.Equal(t, 1, strings.Count(string(said), "handler.go"), "for that reason alone: %s", said)
}

type fromOutside struct{}

func TestTheContextOfAHandler(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Config.HandlerTimeout = time.Hour
	lost := errors.New("partition lost")
	partition, lose := context.WithCancelCause(context.WithValue(t.Context(), fromOutside{}, "value"))
	defer lose(nil)
	var offsets []int64
	_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, _ testData) error {
		origin, known := event.OriginFrom(ctx)
		require.True(t, known)
		offsets = append(offsets, origin.Offset)
		require.Equal(t, "value", ctx.Value(fromOutside{}))
		deadline, limited := ctx.Deadline()
		require.True(t, limited)
		require.WithinDuration(t, time.Now(), deadline, b.Config.HandlerTimeout)
		require.NoError(t, ctx.Err())
		if len(offsets) < 3 {
			return nil
		}
		derived, cancel := context.WithCancel(ctx)
		defer cancel()
		lose(lost)
		<-derived.Done()
		require.ErrorIs(t, context.Cause(derived), lost)
		return ctx.Err()
	})
	msgs := records(t, partition, newEvent(), newEvent(), newEvent())
	handled, err := handle(partition, msgs)
	require.Zero(t, handled)
	require.ErrorIs(t, err, lost)
	require.Equal(t, []int64{0, 1, 2}, offsets)
	require.Zero(t, b.Count(t, `select count(*) from inbox`))
	for _, msg := range msgs {
		require.Equal(t, "value", msg.Context().Value(fromOutside{}), "the message has its own context again")
	}
}
