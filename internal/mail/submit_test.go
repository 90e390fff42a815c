package mail_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/mailbox"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/mail"
)

const patience = 30 * time.Second

func newSMTP(t *testing.T, cfg mailbox.Config, change func(*mail.Config)) (*mail.Sender, *mailbox.Mailbox) {
	t.Helper()
	box, err := mailbox.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	settings := mail.Config{Addr: box.SMTPAddr(), TLS: "none", Timeout: patience}
	if change != nil {
		change(&settings)
	}
	return &mail.Sender{Config: settings, From: "Twinbox <no-reply@example.com>"}, box
}

var letter = mail.Letter{
	MessageID: "1@example.com", To: "ada@example.org",
	Subject: "Grüße\r\nBcc: eve@example.org", Text: "Hello.\n.\nA lone dot.\n",
}

func ready(context.Context) error { return nil }

func TestALetterArrivesAsWritten(t *testing.T) {
	t.Parallel()
	s, box := newSMTP(t, mailbox.Config{}, nil)
	require.NoError(t, s.Submit(t.Context(), letter, ready))
	messages := box.Messages()
	require.Len(t, messages, 1)
	require.Equal(t, []string{"ada@example.org"}, messages[0].To, "a line break in the subject adds no recipient")
	require.Equal(t, "1@example.com", messages[0].MessageID)
	require.Contains(t, messages[0].Text, "\n.\nA lone dot.")
}

func TestNothingIsSentBeforeTheSenderIsReady(t *testing.T) {
	t.Parallel()
	s, box := newSMTP(t, mailbox.Config{}, nil)
	notReady := errors.New("the claim is gone")
	require.Equal(t, notReady, s.Submit(t.Context(), letter, func(context.Context) error { return notReady }))
	require.Empty(t, box.Messages())
}

func TestWhatCannotConnectIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*mail.Config){
		"port 1 is closed":           func(c *mail.Config) { c.Addr = "127.0.0.1:1" },
		"STARTTLS is not offered":    func(c *mail.Config) { c.TLS = "starttls" },
		"the server speaks no TLS":   func(c *mail.Config) { c.TLS, c.Timeout = "tls", time.Second },
		"no such host":               func(c *mail.Config) { c.Addr, c.Timeout = "mail.invalid:25", time.Second },
		"an account, and no login":   func(c *mail.Config) { c.Username, c.Password = "u", "hunter2" },
		"a port that is not one":     func(c *mail.Config) { c.Addr = "127.0.0.1:smtp" },
		"an address without a port":  func(c *mail.Config) { c.Addr = "127.0.0.1" },
		"a host that mail cannot be": func(c *mail.Config) { c.Addr = ":25" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, box := newSMTP(t, mailbox.Config{}, change)
			err := s.Submit(t.Context(), letter, func(context.Context) error {
				t.Error("submitting, though nothing was sent")
				return nil
			})
			require.Equal(t, failure.Transient, failure.Classify(err), "%v", err)
			require.NotContains(t, err.Error(), "hunter2")
			require.Empty(t, box.Messages())
		})
	}
}

func TestALetterThatCannotBeWrittenIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := newSMTP(t, mailbox.Config{}, nil)
	s.From = "postmaster"
	require.Equal(t, failure.Permanent, failure.Classify(s.Submit(t.Context(), letter, ready)))
}

func TestSMTPCrossChecks(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		cfg  mail.Config
		want []string
	}{
		"no login":               {mail.Config{TLS: "none"}, nil},
		"login over TLS":         {mail.Config{TLS: "tls", Username: "u", Password: "p"}, nil},
		"login over STARTTLS":    {mail.Config{TLS: "starttls", Username: "u", Password: "p"}, nil},
		"login in the clear":     {mail.Config{TLS: "none", Username: "u", Password: "p"}, []string{"SMTP_TLS"}},
		"login if TLS is there":  {mail.Config{TLS: "opportunistic", Username: "u", Password: "p"}, []string{"SMTP_TLS"}},
		"user without password":  {mail.Config{TLS: "tls", Username: "u"}, []string{"SMTP_PASSWORD"}},
		"password without user":  {mail.Config{TLS: "tls", Password: "p"}, []string{"SMTP_PASSWORD"}},
		"password, and no TLS":   {mail.Config{TLS: "none", Password: "p"}, []string{"SMTP_PASSWORD", "SMTP_TLS"}},
		"nothing of it is asked": {mail.Config{TLS: "opportunistic"}, nil},
	} {
		var variables []string
		for _, rule := range row.cfg.Rules(lease.Settings{Lease: time.Minute}, time.Minute) {
			if !rule.Holds {
				variables = append(variables, rule.Variable)
			}
		}
		require.Equal(t, row.want, variables, name)
	}
}
