package inbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
)

func TestAnEventThatWaitsForAConnection(t *testing.T) {
	t.Parallel()
	for name, events := range map[string]int{"alone": 1, "in a batch": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			busy, err := b.onOneConnection(t).Acquire(t.Context())
			require.NoError(t, err)
			defer busy.Release()
			impatient, stop := context.WithCancel(t.Context())
			var classes []failure.Class
			b.Config.HandlerTimeout, b.Config.MaxAttempts = 50*time.Millisecond, 1
			b.Host.OnFailure = func(_ context.Context, cause error) {
				if classes = append(classes, failure.Classify(cause)); len(classes) == 3 {
					stop()
				}
			}
			_, handle := b.handle(t, effect)
			_, err = handle(impatient, fromNowhere(impatient, events))
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, []failure.Class{failure.Transient, failure.Transient, failure.Transient}, classes)
			require.Zero(t, b.counted(t, inbox.Dead))
		})
	}
}

func fromNowhere(ctx context.Context, n int) []*message.Message {
	msgs := make([]*message.Message, n)
	for i := range msgs {
		msgs[i] = newEvent().Message()
		msgs[i].SetContext(ctx)
	}
	return msgs
}
