package inbox_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
)

func TestAnEventThatWaitsForItsKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler handlerFunc
		taken   string
	}{
		"a write":                   {effect, `select from inbox_key for update`},
		"a queued write":            {queueing(nil), `select from inbox_key for update`},
		"a write, new key":          {effect, `insert into inbox_key values ('test', 'new', 1)`},
		"a queued write to new key": {queueing(nil), `insert into inbox_key values ('test', 'new', 1)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Exec(t, `insert into inbox_key values ('test', 'key-1', 1)`)
			other, err := b.Pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = other.Rollback(t.Context()) }()
			_, err = other.Exec(t.Context(), c.taken)
			require.NoError(t, err)
			impatient, stop := context.WithCancel(t.Context())
			b.Config.Order, b.Config.MaxAttempts, b.Config.HandlerTimeout = inbox.Latest, 1, brief
			failures := 0
			b.Host.OnFailure = func(context.Context, error) {
				if failures++; failures == 3 {
					stop()
				}
			}
			e := v("key-1", 2)
			if strings.HasPrefix(c.taken, "insert") {
				e.Key = "new"
			}
			in, handle := b.handle(t, c.handler)
			_, err = handle(impatient, records(t, impatient, e))
			require.ErrorIs(t, err, context.Canceled, "three attempts, and none counts")
			require.Equal(t, 3, failures)
			require.NoError(t, in.Close(t.Context()))
			require.NoError(t, other.Rollback(t.Context()))

			b.Config.HandlerTimeout = waitLimit
			require.NoError(t, b.Deliver(t, record(t, e, 1), c.handler))
			require.Equal(t, 1, b.Effects(t, e.ID))
			require.Zero(t, b.Count(t, `select count(*) from dead_letter`))
		})
	}
}
