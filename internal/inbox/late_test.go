package inbox_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
)

const (
	slow  = `select pg_sleep(60)`
	brief = 300 * time.Millisecond // a handler's time
)

func lateHandlers(t *testing.T) map[string]handlerFunc {
	t.Helper()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	return map[string]handlerFunc{
		"a slow statement": func(ctx context.Context, tx pgx.Tx, _ event.Event, _ testData) error {
			_, err := tx.Exec(ctx, slow)
			return err
		},
		"a slow statement in the queue": func(ctx context.Context, tx pgx.Tx, _ event.Event, _ testData) error {
			return inbox.Queue(ctx, tx, slow)
		},
		"a slow statement in a savepoint": func(ctx context.Context, tx pgx.Tx, _ event.Event, _ testData) error {
			return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, slow)
				return err
			})
		},
		"a slow statement whose error is overlooked": func(
			ctx context.Context, tx pgx.Tx, e event.Event, data testData,
		) error {
			_, _ = tx.Exec(ctx, slow)
			return effect(ctx, tx, e, data)
		},
		"a wait": func(ctx context.Context, _ pgx.Tx, _ event.Event, _ testData) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"a wait that is overlooked": func(ctx context.Context, tx pgx.Tx, _ event.Event, _ testData) error {
			<-ctx.Done()
			return nil
		},
		"a server that does not answer": func(ctx context.Context, _ pgx.Tx, _ event.Event, _ testData) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, silent.URL, nil)
			if err != nil {
				return err
			}
			answer, err := http.DefaultClient.Do(request)
			if err == nil {
				err = answer.Body.Close()
			}
			return err
		},
	}
}

// A machine that is frozen for as long makes this handler late too, so it is retried.
func healthy(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
	err := effect(ctx, tx, e, data)
	if err != nil && ctx.Err() != nil {
		return failure.AsTransient(err)
	}
	return err
}

func TestAHandlerThatIsAlwaysLateIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, late := range lateHandlers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Config.Order, b.Config.HandlerTimeout, b.Config.MaxAttempts = inbox.Strict, brief, 2
			before, poison, behind := v("a", 1), v("b", 1), v("c", 1)
			calls := 0
			_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
				if e.ID != poison.ID {
					return healthy(ctx, tx, e, data)
				}
				calls++
				require.LessOrEqual(t, calls, 4, "in two batches, and twice alone")
				return late(ctx, tx, e, data)
			})
			msgs := []*message.Message{record(t, before, 1), record(t, poison, 2), record(t, behind, 3)}
			handled, err := handle(t.Context(), msgs)
			require.NoError(t, err)
			require.Len(t, msgs, handled)
			require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter`))
			require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter where event_id = $1 and class = 'unknown'
				and code = 'handler_timeout' and attempts >= 2 and error like 'handler ran longer than 300ms: %'`, poison.ID))
			require.Equal(t, []int{1, 0, 1},
				[]int{b.Effects(t, before.ID), b.Effects(t, poison.ID), b.Effects(t, behind.ID)})
		})
	}
}
