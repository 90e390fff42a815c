package notification

import (
	"bytes"
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/mail"
	"example.com/twinbox/internal/service/circuit"
	"example.com/twinbox/test/testkit"
)

func watchMailServer(t *testing.T, s *Sender) *circuit.Circuit {
	t.Helper()
	mailServer := mail.NewCircuit(s.smtp, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	s.suspect = mailServer.Suspect
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mailServer.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return mailServer
}

func awaitMailServer(t *testing.T, mailServer *circuit.Circuit, says string) {
	t.Helper()
	testkit.Until(t, func() bool {
		err := mailServer.Err()
		if says == "" {
			return err == nil
		}
		return err != nil && strings.Contains(err.Error(), says)
	}, "want %q", says)
}

func TestAMailServerThatTakesNoMailIsDown(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		at     testkit.SMTPStage
		answer testkit.SMTPAnswer
		says   string
	}{
		"refuses":                 {testkit.AtConnect, testkit.SMTPAnswer{Say: "554 5.3.2 no service"}, "554"},
		"hangs up":                {testkit.AtConnect, testkit.SMTPAnswer{Cut: true}, "EOF"},
		"knows us not":            {testkit.AtHello, testkit.SMTPAnswer{Say: "550 5.7.1 not from here"}, "connect: "},
		"has no room":             {testkit.AtFrom, testkit.SMTPAnswer{Say: "452 4.3.1 no room"}, "mail from: 452"},
		"has no room for mails":   {testkit.AtDot, testkit.SMTPAnswer{Say: "452 4.3.1 no room"}, "DATA writer: 452 4.3.1"},
		"takes no mail":           {testkit.AtData, testkit.SMTPAnswer{Say: "554 5.3.2 read only"}, "DATA command: 554"},
		"refuses the sender":      {testkit.AtFrom, testkit.SMTPAnswer{Say: "550 5.7.1 not yours"}, "mail from: 550"},
		"cannot read the sender":  {testkit.AtFrom, testkit.SMTPAnswer{Say: "501 what"}, "mail from: 501"},
		"hangs up on the sender":  {testkit.AtFrom, testkit.SMTPAnswer{Cut: true}, "mail from: EOF"},
		"refuses the sender late": {testkit.AtTo, testkit.SMTPAnswer{Say: "550 5.1.8 no domain"}, "command: 550 5.1.8"},
		"wants a login":           {testkit.AtFrom, testkit.SMTPAnswer{Say: "530 5.7.0 log in"}, "mail from: 530"},
		"wants a login late":      {testkit.AtTo, testkit.SMTPAnswer{Say: "530 5.7.0 log in"}, "RCPT TO command: 530"},
		"never answers":           {testkit.AtConnect, testkit.SMTPAnswer{}, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var away atomic.Bool
			back := make(chan struct{})
			answer := row.answer
			if answer == (testkit.SMTPAnswer{}) {
				answer.Wait = back
			}
			var mailServer *circuit.Circuit
			b, server := facing(t, func(stage testkit.SMTPStage) testkit.SMTPAnswer {
				if away.Load() && stage == row.at {
					return answer
				}
				return testkit.SMTPAnswer{}
			}, func(s *Sender) {
				s.smtp.Config.Timeout = 3 * time.Second
				mailServer = watchMailServer(t, s)
			})
			require.NoError(t, mailServer.Await(t.Context()))
			away.Store(true)
			b.register(t)
			b.start(t)
			awaitMailServer(t, mailServer, row.says)
			require.Zero(t, b.count(t, `select count(*) from lease where state = 'failed'`), "the mail waits")
			away.Store(false)
			close(back)
			awaitMailServer(t, mailServer, "")
			b.awaitState(t, string(lease.Done))
			require.Len(t, server.Mails(), 1)
		})
	}
}

func TestAMailServerIsBackWithoutAMail(t *testing.T) {
	t.Parallel()
	addr := testkit.ReservePort(t)
	s := newSetup(nil, nil, addr)
	s.smtp.Config.Timeout = 3 * time.Second
	mailServer := watchMailServer(t, &s)
	awaitMailServer(t, mailServer, "connection refused")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	require.NoError(t, err)
	server := testkit.ServeSMTP(t, listener, nil, testkit.SMTPAnswers(nil))
	awaitMailServer(t, mailServer, "")
	server.AwaitHangUp(t)
}

func TestAWrongPasswordIsADownMailServer(t *testing.T) {
	t.Parallel()
	server := testkit.StartSMTP(t, testkit.SMTPAnswers(nil))
	s := newSetup(nil, nil, server.Addr())
	s.smtp.Config.Username, s.smtp.Config.Password = "app", config.Secret("hunter2")
	s.smtp.Config.Timeout = 3 * time.Second
	mailServer := watchMailServer(t, &s)
	awaitMailServer(t, mailServer, "mail server is down: connect: ")
	require.NotContains(t, mailServer.Err().Error(), "hunter2")
}

// No mail goes in the clear instead.
func TestAMailServerWithABadCertificateIsDown(t *testing.T) {
	t.Parallel()
	for name, flaw := range testkit.TLSFlaws {
		for _, policy := range []string{"starttls", "opportunistic"} {
			t.Run(name+", "+policy, func(t *testing.T) {
				t.Parallel()
				certified := testkit.NewTLSServer(t)
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
				server := testkit.ServeSMTP(t, listener, certified.Config(), testkit.SMTPAnswers(nil))
				b := setup(t)
				var mailServer *circuit.Circuit
				b.sender = b.newSender(t, func(s *Sender) {
					s.smtp.Config.Addr, s.smtp.Config.TLS, s.smtp.Config.Timeout = server.Addr(), policy, 3*time.Second
					s.smtp.Roots = certified.Roots()
					mailServer = watchMailServer(t, s)
				})
				require.NoError(t, mailServer.Await(t.Context()))
				certified.Show(t, flaw.Spoil)
				b.register(t)
				b.start(t)
				awaitMailServer(t, mailServer, flaw.Says)
				require.Empty(t, server.Mails())
				certified.Show(t, func(*x509.Certificate) {})
				awaitMailServer(t, mailServer, "")
				b.awaitState(t, string(lease.Done))
			})
		}
	}
}

func TestAMailServerThatIsAwayIsTheCircuitsLine(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var log bytes.Buffer
	var mailServer *circuit.Circuit
	b, _ := facing(t, func(testkit.SMTPStage) testkit.SMTPAnswer {
		asked.Add(1)
		return testkit.SMTPAnswer{Cut: true}
	}, func(s *Sender) {
		mailServer = watchMailServer(t, s)
		s.log = slog.New(circuit.Quiet(slog.NewTextHandler(&log, nil), mailServer))
	})
	b.register(t)
	awaitMailServer(t, mailServer, "EOF")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.sender.Run(ctx) }()
	testkit.Until(t, func() bool { return asked.Load() >= 16 })
	stop()
	require.NoError(t, <-ended)
	require.True(t, mailServer.Down())
	require.Empty(t, log.String())
}
