package inbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/inboxtest"
)

// A handler's own rules hold for its events, alone and in a batch, and for no other's; what they leave out is the
// consumer's. Transient failures know no rules.
func TestAHandlerHasItsOwnRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules    []inbox.Option
		attempts int
	}{
		"none":             {nil, 5},
		"once":             {[]inbox.Option{inbox.Retry(inbox.RetryRules{MaxAttempts: 1})}, 1},
		"more":             {[]inbox.Option{inbox.Retry(inbox.RetryRules{MaxAttempts: 7})}, 7},
		"pauses alone":     {[]inbox.Option{inbox.Retry(inbox.RetryRules{RetryMin: time.Microsecond})}, 5},
		"a longest pause":  {[]inbox.Option{inbox.Retry(inbox.RetryRules{RetryMax: time.Microsecond})}, 5},
		"a longer pause":   {[]inbox.Option{inbox.Retry(inbox.RetryRules{RetryMin: 3 * time.Millisecond})}, 5},
		"for no time":      {[]inbox.Option{inbox.Retry(inbox.RetryRules{GiveUpAfter: 1})}, 2},
		"for a long time":  {[]inbox.Option{inbox.Retry(inbox.RetryRules{GiveUpAfter: time.Hour})}, 5},
		"what comes first": {[]inbox.Option{inbox.Retry(inbox.RetryRules{MaxAttempts: 3, GiveUpAfter: time.Hour})}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := inboxtest.New(t)
			other := cloudevent.Define[inboxtest.Data](cloudevent.Declaration{Type: "com.example.other.v1"})
			mux, away := inbox.NewMux(), 9
			refuse := func(_ context.Context, _ pgx.Tx, _ cloudevent.Event, data inboxtest.Data) error {
				if data.Value == "transient" && away > 0 {
					away--
					return failure.AsTransient(errors.New("away"))
				} else if data.Value == "transient" {
					return nil
				}
				return errors.New("refused")
			}
			inbox.Handle(mux, inboxtest.Event, refuse, c.rules...)
			inbox.Handle(mux, other, refuse)
			b.Config.Handlers = mux
			in := b.Inbox(t)
			mine, others, transient := inboxtest.NewEvent(), inboxtest.NewEvent(), inboxtest.NewEvent()
			others.Type, others.Key = other.Type, "key-2"
			transient.Key, transient.Data = "key-3", []byte(`{"value":"transient"}`)
			for i, event := range []cloudevent.Event{mine, others, transient} {
				require.NoError(t, inboxtest.Deliver(in, mux, inboxtest.Record(t, event, int64(i))))
			}
			attempts := func(e cloudevent.Event) int {
				return b.Count(t, `select coalesce(max(attempts), 0) from dead_letter where event_id = $1`, e.ID)
			}
			require.Equal(t, c.attempts, attempts(mine))
			require.Equal(t, 5, attempts(others))
			require.Zero(t, attempts(transient))
			require.Zero(t, away)
		})
	}
}

func TestRulesWithoutAMeaning(t *testing.T) {
	t.Parallel()
	for _, rules := range []inbox.RetryRules{
		{MaxAttempts: -1}, {RetryMin: -1}, {RetryMax: -1}, {GiveUpAfter: -1}, {RetryMin: 2, RetryMax: 1},
	} {
		require.Panics(t, func() {
			inbox.Handle(inbox.NewMux(), inboxtest.Event, inboxtest.Effect, inbox.Retry(rules))
		}, "%+v", rules)
	}
}
