package notification

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/test/testkit"
)

func TestManySendersSendEachMailOnce(t *testing.T) {
	t.Parallel()
	const mails = 30
	b := setup(t)
	for i := range mails {
		b.owe(t, uuid.Must(uuid.NewV7()), fmt.Sprintf("user%d@example.org", i))
	}
	other := *b
	other.sender = b.newSender(t, nil)
	b.start(t)
	other.start(t)
	testkit.Until(t, func() bool {
		return b.count(t, `select count(*) from lease where state = 'done' and attempts = 1`) == mails
	})

	seen := map[string]int{}
	for _, m := range b.box.Messages() {
		seen[m.To[0]]++
	}
	require.Len(t, seen, mails)
	for recipient, times := range seen {
		require.Equal(t, 1, times, recipient)
	}
	require.Equal(t, mails, b.count(t, `select count(distinct key) from outbox where event_type = $1`,
		contract.VerificationEmailSent.Type))
	require.Equal(t, mails, b.count(t, `select count(*) from outbox`))
}
