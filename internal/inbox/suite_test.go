package inbox_test

import (
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

// A scenario is one partition's records and their outcomes, for any batch size.
type scenario struct {
	configure func(*inbox.Config)
	before    string // SQL
	handler   handlerFunc
	events    func() []event.Event
	spoil     func(i int, m *message.Message)
	outcomes  []inbox.Outcome
	effects   []int // indexes of the events
	letters   []string
	parked    []string
	watermark int64 // of key-1
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{0, 1, 3, 200} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for name, s := range scenarios {
				t.Run(name, func(t *testing.T) { s.play(t, b.again(t), batch) })
			}
		})
	}
}

func (s scenario) play(t *testing.T, b *bundle, batch int) {
	if s.before != "" {
		_, err := b.Pool.Exec(t.Context(), s.before)
		require.NoError(t, err)
	}
	b.Config.MaxAttempts, b.Config.Batch = 2, max(batch, 1)
	if s.configure != nil {
		s.configure(&b.Config)
	}
	var outcomes []inbox.Outcome
	var seen []string
	b.Host.OnOutcome = func(e event.Event, o inbox.Outcome) {
		outcomes, seen = append(outcomes, o), append(seen, e.ID)
	}
	handler := s.handler
	if handler == nil {
		handler = effect
	}
	events := s.events()
	msgs, ids, effects := make([]*message.Message, len(events)), make([]string, len(events)), []string{}
	for i, e := range events {
		msgs[i], ids[i] = record(t, e, int64(i)), e.ID
		if s.spoil != nil {
			s.spoil(i, msgs[i])
		}
	}
	told := b.listen()
	b.run(t, batch, handler, msgs)
	require.Equal(t, s.outcomes, outcomes)
	told.require(t, b, outcomes)
	require.Equal(t, ids, seen, "in order")
	for _, i := range s.effects {
		effects = append(effects, ids[i])
	}
	require.Equal(t, effects, b.List(t, `select event_id from ledger order by n`))
	require.Equal(t, append([]string{}, s.letters...),
		b.List(t, `select code from dead_letter where class <> 'parked' order by id`))
	require.Equal(t, append([]string{}, s.parked...),
		b.List(t, `select code from dead_letter where class = 'parked' order by id`))
	require.Equal(t, int(s.watermark),
		b.Count(t, `select coalesce(max(version), 0) from inbox_key where key = 'key-1'`))

	// All again, as after a crash before the offsets: no new effects.
	outcomes = nil
	for i, e := range events {
		msgs[i] = record(t, e, int64(i))
		if s.spoil != nil {
			s.spoil(i, msgs[i])
		}
	}
	b.run(t, batch, handler, msgs)
	require.Len(t, outcomes, len(events))
	for _, outcome := range []inbox.Outcome{inbox.Applied, inbox.Gap, inbox.Parked} {
		require.NotContains(t, outcomes, outcome)
	}
	require.Equal(t, effects, b.List(t, `select event_id from ledger order by n`))
	require.Equal(t, len(s.letters)+len(s.parked), b.Count(t, `select count(*) from dead_letter`))
}

func (b *bundle) run(t *testing.T, batch int, handler handlerFunc, msgs []*message.Message) {
	t.Helper()
	next := muxOf(handler).HandleMessage
	in := b.Inbox(t)
	if batch == 0 {
		for _, m := range msgs {
			_, err := in.Middleware(next)(m)
			require.NoError(t, err)
		}
	} else {
		handled, err := in.BatchMiddleware(next)(t.Context(), msgs)
		require.NoError(t, err)
		require.Equal(t, len(msgs), handled)
	}
	require.NoError(t, in.Close(t.Context()))
}
