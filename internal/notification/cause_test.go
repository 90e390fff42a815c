package notification

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/mail"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/circuit"
	"example.com/twinbox/test/testkit"
)

// awaitCause waits until the reason has the code; "" where none holds.
func (b *bundle) awaitCause(t *testing.T, mailServer *circuit.Circuit, code, sentence string) (found service.Cause) {
	t.Helper()
	testkit.Until(t, func() bool {
		var err error
		found, err = mail.Why(b.pool, handlerVerification, mailServer)(t.Context())
		require.NoError(t, err)
		return found.Code == code
	}, "want %q: %v", code, &found)
	require.Regexp(t, "^"+sentence+"$", found.Sentence)
	return found
}

const aTime = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`

// A mail server that takes nothing is one cause; that it hung up with a mail in its hands is another, which stays.
func TestWhyMailsWait(t *testing.T) {
	t.Parallel()
	var away, cuts atomic.Bool
	var mailServer *circuit.Circuit
	b, _ := facing(t, func(at testkit.MailStage, _ string) testkit.MailAnswer {
		switch {
		case away.Load() && at == testkit.MailConnect:
			return testkit.MailAnswer{Say: "554 5.3.2 no service"}
		case cuts.Load() && at == testkit.MailTaken:
			return testkit.MailAnswer{Cut: true}
		}
		return testkit.MailAnswer{}
	}, func(s *Sender) {
		s.smtp.Config.Timeout = 3 * time.Second
		mailServer = watchMailServer(t, s)
	})
	require.NoError(t, mailServer.Await(t.Context()))
	b.awaitCause(t, mailServer, "", "")
	away.Store(true)
	cuts.Store(true)
	b.register(t)
	b.start(t)
	c := b.awaitCause(t, mailServer, "mail_server_down", `The mail server has been down since `+aTime+`: .*554.*\.`)
	require.EqualValues(t, 1, c.Figures["mails"])
	require.WithinDuration(t, time.Now(), c.Since, patience)
	away.Store(false)
	c = b.awaitCause(t, mailServer, "mail_uncertain",
		`Of 1 mail it is not known whether the mail server took it, of the first since `+aTime+`\.`)
	require.EqualValues(t, 1, c.Figures["mails"])
	require.Equal(t, "twinbox mail list --state uncertain", c.Command)
	_, err := b.pool.Exec(t.Context(), `update lease set state = 'done'`)
	require.NoError(t, err)
	b.awaitCause(t, mailServer, "", "")
}
