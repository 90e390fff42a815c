package order

import (
	"testing"

	"github.com/stretchr/testify/require"

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
	require.Equal(t, "pending", owed.Steps[0].Outcome)
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
