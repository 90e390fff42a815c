package inbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
)

// Another transaction, such as a replay whose process is frozen, has the key's watermark for longer than all attempts
// of an event may take. That uses up none of them.
func TestAnEventThatWaitsForItsWatermark(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]handlerFunc{"a write": effect, "a queued write": queueing(nil)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Exec(t, `insert into inbox_watermark values ('test', 'key-1', 1)`)
			other, err := b.Pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = other.Rollback(t.Context()) }()
			_, err = other.Exec(t.Context(), `select from inbox_watermark for update`)
			require.NoError(t, err)
			impatient, stop := context.WithCancel(t.Context())
			b.Config.Versioned, b.Config.MaxAttempts, b.Config.HandlerTimeout = true, 1, time.Second
			pauses := 0
			b.Host.OnPause = func(context.Context, error) {
				if pauses++; pauses == 3 {
					stop()
				}
			}
			e := v("key-1", 2)
			in, handle := b.handle(t, handler)
			_, err = handle(impatient, records(t, impatient, e))
			require.ErrorIs(t, err, context.Canceled, "three attempts have used up none")
			require.Equal(t, 3, pauses)
			require.NoError(t, in.Close(t.Context()))
			require.NoError(t, other.Rollback(t.Context()))

			b.Config.HandlerTimeout = waitLimit
			require.NoError(t, b.Deliver(t, record(t, e, 1), handler))
			require.Equal(t, 1, b.Effects(t, e.ID))
			require.Zero(t, b.Count(t, `select count(*) from dead_letter`))
		})
	}
}

// A handler that is late is given up also where the guard of its key's watermark is sent with what it writes.
func TestAVersionedHandlerThatIsAlwaysLate(t *testing.T) {
	t.Parallel()
	for name, late := range lateHandlers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Config.Versioned, b.Config.MaxAttempts, b.Config.HandlerTimeout = true, 1, time.Second
			require.NoError(t, b.Deliver(t, record(t, v("key-1", 1), 1), late))
			require.Equal(t, []string{inbox.CodeHandlerTimeout}, b.List(t, `select code from dead_letter`))
		})
	}
}
