package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

func TestTheReceiptIsInTheOrdersStory(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	o := s.place(t)
	event := told(t, newPayment(o, price))
	require.Equal(t, inbox.Applied, s.consume(t, event))
	tell := newReceiptList(s.pool).Tell

	owed, err := tell(t.Context(), o.ID)
	require.NoError(t, err)
	require.Empty(t, owed.Kind, "an order is no user")
	require.Equal(t, []string{event.ID}, owed.Related)
	require.Len(t, owed.Steps, 1)
	require.Equal(t, "owed", owed.Steps[0].Outcome)
	receipt := owed.Steps[0].Subject

	_, err = s.pool.Exec(t.Context(), `update lease set state = 'done', attempts = 1, ended_at = clock_timestamp()`)
	require.NoError(t, err)
	for _, id := range []string{o.ID, event.ID, receipt} {
		sent, err := tell(t.Context(), id)
		require.NoError(t, err)
		require.Len(t, sent.Steps, 2)
		require.Equal(t, "sent", sent.Steps[1].Outcome)
		require.Equal(t, event.ID, sent.Steps[1].EventID)
		require.Equal(t, id == receipt, sent.Kind == adminapi.StoryKindMail)
	}
	nothing, err := tell(t.Context(), "nothing")
	require.NoError(t, err)
	require.Empty(t, nothing.Steps)
}

func TestAnUncertainReceiptIsSettled(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	o := s.place(t)
	require.Equal(t, inbox.Applied, s.consume(t, told(t, newPayment(o, price))))
	_, err := s.pool.Exec(t.Context(), `update lease set state = 'uncertain', attempts = 1, ended_at = clock_timestamp()`)
	require.NoError(t, err)
	receipts := newReceiptList(s.pool)
	list := func(state adminapi.MailState) []adminapi.Mail {
		t.Helper()
		found, err := receipts.List(t.Context(), adminapi.MailQuery{State: state, Limit: 10, Recipient: true})
		require.NoError(t, err)
		return found
	}
	uncertain := list(adminapi.Uncertain)
	require.Len(t, uncertain, 1)
	require.Equal(t, []string{"receipt", o.ID, "ada@example.org"},
		[]string{uncertain[0].Template, uncertain[0].UserID, uncertain[0].Recipient})

	ada := audit.Change{By: "ada", Reason: "the provider has it"}
	result, err := receipts.MarkSent(t.Context(), []string{uncertain[0].ID}, ada)
	require.NoError(t, err)
	require.EqualValues(t, 1, result.Count)
	require.Empty(t, list(adminapi.Uncertain))
	require.Len(t, list(adminapi.Sent), 1)
	story, err := receipts.Tell(t.Context(), o.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"owed", "sent", "mark_sent"},
		[]string{story.Steps[0].Outcome, story.Steps[1].Outcome, story.Steps[2].Outcome})
}
