package main

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
)

// refusing fails as it is told to.
type refusing struct{ err error }

func (r refusing) Publish(string, ...*message.Message) error { return r.err }
func (refusing) Close() error                                { return nil }

type partialError map[int]error

func (partialError) Error() string                  { return "some failed" }
func (p partialError) FailedIndexes() map[int]error { return p }

func TestLedgerCountsWhatIsAcknowledged(t *testing.T) {
	t.Parallel()
	c := corpus{topic: "t"}
	three := []*message.Message{c.message(0), c.message(1), c.message(2)}

	l := newLedger(refusing{partialError{1: errors.New("no")}}, 3)
	require.Error(t, l.Publish("t", three...))
	count, _ := l.acknowledged()
	require.Equal(t, 2, count, "the call names the one that failed")

	l.Publisher = refusing{errors.New("all failed")}
	require.Error(t, l.Publish("t", three...))
	count, _ = l.acknowledged()
	require.Equal(t, 2, count)

	l.Publisher = accepting{}
	first := l.times()[0]
	require.NoError(t, l.PublishContext(t.Context(), "t", three...))
	require.NoError(t, l.wait(t.Context()))
	require.Equal(t, first, l.times()[0], "sent again is not acknowledged later")
}

func TestLedgerSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	l := newLedger(accepting{}, 2)
	require.NoError(t, l.Publish("t", corpus{topic: "t"}.message(1)))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	require.ErrorContains(t, l.wait(ctx), "1 of 2 events not acknowledged: enough")
}

func TestLedgerNoticesForeignMessages(t *testing.T) {
	t.Parallel()
	l := newLedger(accepting{}, 1)
	require.NoError(t, l.Publish("t", corpus{topic: "t"}.message(7), corpus{topic: "t"}.message(0)))
	require.ErrorIs(t, l.wait(t.Context()), errForeignID)
}

func TestLedgerOfNothingIsDone(t *testing.T) {
	t.Parallel()
	require.NoError(t, newLedger(accepting{}, 0).wait(t.Context()))
}
