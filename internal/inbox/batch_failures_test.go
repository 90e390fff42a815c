package inbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

func TestABatchInWhichManyEventsFail(t *testing.T) {
	t.Parallel()
	shared := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		b := shared.again(t)
		b.Config.Batch = rapid.IntRange(1, 8).Draw(rt, "batch")
		events := versions("key-1", make([]int64, rapid.IntRange(1, 8).Draw(rt, "events"))...)()
		fates := make(map[string]*fate, len(events))
		ids, effects, want := []string{}, []string{}, []inbox.Outcome{}
		for _, e := range events {
			f := drawFate(rt)
			fates[e.ID], ids = f, append(ids, e.ID)
			if f.refused {
				want = append(want, inbox.Dead)
			} else {
				want, effects = append(want, inbox.Applied), append(effects, e.ID)
			}
		}
		seen, outcomes := []string{}, []inbox.Outcome{}
		b.Host.OnOutcome = func(e event.Event, o inbox.Outcome) {
			seen, outcomes = append(seen, e.ID), append(outcomes, o)
		}
		_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
			if err := fates[e.ID].next(); err != nil {
				return err
			}
			return inbox.Queue(ctx, tx, `insert into ledger (event_id) values ($1)`, e.ID)
		})
		handled, err := handle(t.Context(), records(t, t.Context(), events...))
		require.NoError(rt, err)
		require.Equal(rt, len(events), handled)
		require.Equal(rt, ids, seen, "in order")
		require.Equal(rt, want, outcomes)
		require.Equal(rt, effects, b.List(t, `select event_id from ledger order by n`))
	})
}

// fate is how an event's attempts end: listed failures first, and whether its handler refuses it.
type fate struct {
	fails   []bool
	refused bool
}

func drawFate(t *rapid.T) *fate {
	return &fate{
		fails:   rapid.SliceOfN(rapid.Bool(), 0, 3).Draw(t, "attempts that fail"),
		refused: rapid.IntRange(0, 4).Draw(t, "refused at last") == 0,
	}
}

func (f *fate) next() error {
	failed := false
	if len(f.fails) > 0 {
		failed, f.fails = f.fails[0], f.fails[1:]
	}
	switch {
	case failed:
		return &pgconn.PgError{Code: "57P01"}
	case f.refused:
		return inbox.Permanent(errors.New("never"))
	}
	return nil
}

type attemptsHost struct {
	inbox.Standalone
	noted []string
}

func (h *attemptsHost) Attempted(_ context.Context, failure error) {
	if failure != nil {
		h.noted = append(h.noted, "failed")
		return
	}
	h.noted = append(h.noted, "committed")
}

func (h *attemptsHost) Handled(_ event.Event, outcome inbox.Outcome) {
	h.noted = append(h.noted, string(outcome))
}

func TestTheHostLearnsOfEachAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	host := &attemptsHost{}
	b.Config.Host = host
	calls := 0
	_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
		if calls++; calls == 1 {
			return &pgconn.PgError{Code: "57P01"}
		}
		host.noted = append(host.noted, "handling")
		return effect(ctx, tx, e, data)
	})
	_, err := handle(t.Context(), records(t, t.Context(), newEvent(), newEvent()))
	require.NoError(t, err)
	require.Equal(t, []string{
		"failed", "handling", "committed", "applied", "handling", "committed", "applied",
	}, host.noted)
	host.noted = nil
	_, err = handle(t.Context(), records(t, t.Context(), newEvent()))
	require.NoError(t, err)
	require.Equal(t, []string{"handling", "committed", "applied"}, host.noted)
}

func TestAHandlerThatChangesItsMessageChangesNoDeadLetter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Config.MaxAttempts = 1
	e, beside := newEvent(), newEvent()
	beside.Key = "beside"
	handle := b.Inbox(t).BatchMiddleware(func(m *message.Message) ([]*message.Message, error) {
		tx, _ := inbox.TxFromContext(m.Context())
		if e, _ := inbox.EventFromContext(m.Context()); e.ID == beside.ID {
			return nil, inbox.Queue(m.Context(), tx, `insert into ledger (event_id) values ($1)`, e.ID)
		}
		m.Payload = message.Payload(`{"value":"another"}`)
		clear(m.Metadata)
		return nil, errors.New("no")
	})
	alone := e.Message() // without the record's headers
	alone.SetContext(t.Context())
	handled, err := handle(t.Context(), []*message.Message{alone, record(t, beside, 2)})
	require.NoError(t, err)
	require.Equal(t, 2, handled)
	require.Equal(t, []string{e.ID + " handler_failed " + string(e.Data)}, b.List(t, `
		select event_id || ' ' || code || ' ' || convert_from(payload, 'UTF8') from dead_letter
		where headers::text like '%ce_type%'`))
	require.Equal(t, 1, b.Effects(t, beside.ID))
}
