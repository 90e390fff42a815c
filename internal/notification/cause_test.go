package notification

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/mail"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/circuit"
	"example.com/twinbox/test/testkit"
)

func (b *bundle) awaitCauses(t *testing.T, mailServer *circuit.Circuit, codes ...string) (found []service.Cause) {
	t.Helper()
	testkit.Until(t, func() bool {
		var err error
		found, err = mail.Why(b.pool, handlerVerification, mailServer)(t.Context())
		require.NoError(t, err)
		return slices.EqualFunc(found, codes, func(c service.Cause, code string) bool { return c.Code == code })
	}, "want %q: %v", codes, &found)
	return found
}

func TestWhyMailsWait(t *testing.T) {
	t.Parallel()
	var away, cuts atomic.Bool
	var mailServer *circuit.Circuit
	b, _ := facing(t, func(at testkit.SMTPStage) testkit.SMTPAnswer {
		switch {
		case away.Load() && at == testkit.AtConnect:
			return testkit.SMTPAnswer{Say: "554 5.3.2 no service"}
		case cuts.Load() && at == testkit.AtTaken:
			return testkit.SMTPAnswer{Cut: true}
		}
		return testkit.SMTPAnswer{}
	}, func(s *Sender) {
		s.smtp.Config.Timeout = 3 * time.Second
		mailServer = watchMailServer(t, s)
	})
	require.NoError(t, mailServer.Await(t.Context()))
	b.awaitCauses(t, mailServer)
	away.Store(true)
	cuts.Store(true)
	b.register(t)
	b.start(t)
	down := b.awaitCauses(t, mailServer, "mail_server_down")[0]
	require.Equal(t, "The mail server is down.", down.What)
	require.Equal(t, "1 mail waits. None is lost.", down.Means)
	require.Contains(t, down.Details, "554")
	require.WithinDuration(t, time.Now(), down.Since, patience)
	require.True(t, down.Stops)
	away.Store(false)
	uncertain := b.awaitCauses(t, mailServer, "mail_uncertain")[0]
	require.Equal(t, "1 mail may have been sent or not.", uncertain.What)
	require.Equal(t, "twinbox mail list --state uncertain", uncertain.Command)
	require.False(t, uncertain.Stops)
	_, err := b.pool.Exec(t.Context(), `update lease set state = 'failed'`)
	require.NoError(t, err)
	failed := b.awaitCauses(t, mailServer, "mail_failed")[0]
	require.Equal(t, "1 mail could not be sent.", failed.What)
	require.Equal(t, uncertain.Since, failed.Since)
	_, err = b.pool.Exec(t.Context(), `update lease set state = 'done'`)
	require.NoError(t, err)
	b.awaitCauses(t, mailServer)
}
