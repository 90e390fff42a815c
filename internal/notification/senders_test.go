package notification

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
)

// Two senders of several workers each, on one list: every mail goes out once, and each says so once.
func TestManySendersSendEachMailOnce(t *testing.T) {
	t.Parallel()
	const mails = 60
	b := setup(t, nil)
	for i := range mails {
		id := uuid.Must(uuid.NewV7())
		_, err := b.pool.Exec(t.Context(), insertMail, id, id.String(), templateVerification,
			uuid.Must(uuid.NewV7()), fmt.Sprintf("user%d@example.org", i), "Somebody")
		require.NoError(t, err)
	}
	other := *b
	other.sender = &Sender{
		cfg: b.sender.cfg, list: b.list, writer: b.sender.writer, smtp: b.sender.smtp, log: b.sender.log,
		mails: b.sender.mails, wake: make(chan struct{}, 1),
	}
	b.start(t)
	other.start(t)
	require.Eventually(t, func() bool {
		return b.count(t, `select count(*) from mail where state = 'sent' and attempts = 1`) == mails
	}, 20*time.Second, 10*time.Millisecond)

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
