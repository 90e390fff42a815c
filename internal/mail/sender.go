package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/wneessen/go-mail"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/lease"
)

type Config struct {
	Addr     string        `env:"ADDR,required" format:"address" doc:"mail server"`
	TLS      string        `env:"TLS" envDefault:"opportunistic" oneof:"none opportunistic starttls tls" doc:"none: never; opportunistic: STARTTLS where offered; starttls: required; tls: from the first byte"`
	Username string        `env:"USERNAME" doc:"account at the mail server; empty: no login"`
	Password config.Secret `env:"PASSWORD" doc:"its password"`
	Timeout  time.Duration `env:"TIMEOUT" envDefault:"20s" min:"100ms" max:"10m" doc:"for one mail; each step before the content gets at most a third"`
}

// Margin is for the statements around the longest submission of a lease.
const Margin = 5 * time.Second

// Rules returns the cross checks, also with MAIL_ and SHUTDOWN_TIMEOUT.
func (c Config) Rules(leases lease.Settings, shutdown time.Duration) []config.Rule {
	return []config.Rule{{
		Variable: "SMTP_PASSWORD", Holds: (c.Username == "") == (c.Password == ""),
		Text: "is set together with SMTP_USERNAME or not at all",
	}, {
		Variable: "SMTP_TLS", Holds: c.Password == "" || c.TLS == "starttls" || c.TLS == "tls",
		Text: "must be starttls or tls with SMTP_PASSWORD: a password is sent over TLS only",
	}, {
		Variable: "MAIL_LEASE", Holds: leases.Lease >= c.Timeout+Margin,
		Text: fmt.Sprintf("must outlast SMTP_TIMEOUT by %s: a mail may take that, and then it is recorded", Margin),
	}, {
		Variable: "MAIL_HEARTBEAT", Holds: leases.Heartbeat <= leases.Lease/2,
		Text: "must be at most half of MAIL_LEASE: a heartbeat that is late must not cost the lease",
	}, {
		Variable: "MAIL_RETRY_MAX", Holds: leases.RetryMin <= leases.RetryMax,
		Text: "must not be shorter than MAIL_RETRY_MIN",
	}, {
		Variable: "SHUTDOWN_TIMEOUT", Holds: shutdown >= c.Timeout,
		Text: "must not be shorter than SMTP_TIMEOUT: a mail under way is finished",
	}}
}

type Letter struct {
	MessageID string // the same for every attempt, so that a receiver finds a second copy
	To        string
	Subject   string
	Text      string
	WrittenAt time.Time
}

// Sender submits each letter over its own connection.
type Sender struct {
	Config Config
	From   string
	Roots  *x509.CertPool // for the server's certificate; nil: the system's
	// refusal is the last answer that concerns all mails and that a probe cannot get.
	refusal atomic.Pointer[refusal]
}

// Submit calls begin before the first byte of content, and returns its error unchanged; every other one is marked, see
// [lease.Effect].
func (s *Sender) Submit(ctx context.Context, letter Letter, begin func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.Config.Timeout)
	defer cancel()
	conn := newConnection(ctx)
	defer conn.hangUp()
	var refused error
	msg, err := s.compose(letter, func() error {
		fault.Here("smtp.content")
		if refused = begin(ctx); refused != nil {
			conn.hangUp() // the library would send the final dot and QUIT
			return refused
		}
		fault.Here("smtp.submitting")
		return conn.SetDeadline(conn.until)
	})
	if err != nil {
		return failure.AsPermanent(err)
	}
	client, err := s.newClient(conn)
	if err == nil {
		err = client.DialAndSendWithContext(ctx, msg)
	}
	switch {
	case msg.IsDelivered(): // an error is of QUIT
		fault.Here("smtp.accepted")
		return nil
	case refused != nil:
		return refused
	}
	return mark(err)
}

func (s *Sender) compose(letter Letter, begin func() error) (*mail.Msg, error) {
	msg := mail.NewMsg()
	if err := msg.From(s.From); err != nil {
		return nil, fmt.Errorf("compose from: %w", err)
	}
	if err := msg.To(letter.To); err != nil {
		return nil, errors.New("compose to: not an address the mail library takes")
	}
	msg.Subject(letter.Subject)
	msg.SetMessageIDWithValue(letter.MessageID)
	msg.SetDateWithValue(letter.WrittenAt)
	msg.SetBodyWriter(mail.TypeTextPlain, func(w io.Writer) (int64, error) {
		if err := begin(); err != nil {
			return 0, err
		}
		n, err := io.WriteString(w, letter.Text)
		return int64(n), err
	})
	return msg, nil
}

// connectSteps is how often the library restarts its timeout before the content.
const connectSteps = 3

func (s *Sender) newClient(conn *connection) (*mail.Client, error) {
	host, _, _ := net.SplitHostPort(s.Config.Addr) // the format address checks it
	policies := map[string]mail.TLSPolicy{
		"none": mail.NoTLS, "opportunistic": mail.TLSOpportunistic, "starttls": mail.TLSMandatory,
		"tls": mail.TLSOpportunistic, // the connection is encrypted already
	}
	security := &tls.Config{ServerName: host, RootCAs: s.Roots, MinVersion: tls.VersionTLS12}
	dial := func(ctx context.Context, network, _ string) (_ net.Conn, err error) { // the library passes the host alone
		if conn.Conn, err = new(net.Dialer).DialContext(ctx, network, s.Config.Addr); err != nil {
			return nil, err
		}
		if s.Config.TLS != "tls" {
			return conn, nil
		}
		encrypted := tls.Client(conn, security)
		return encrypted, encrypted.HandshakeContext(ctx)
	}
	options := []mail.Option{
		mail.WithTLSPolicy(policies[s.Config.TLS]), mail.WithTimeout(s.Config.Timeout / connectSteps),
		mail.WithTLSConfig(security), mail.WithDialContextFunc(dial), mail.WithoutNoop(), mail.WithoutRset(),
	}
	if s.Config.Username != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(s.Config.Username),
			mail.WithPassword(string(s.Config.Password)))
	}
	return mail.NewClient(host, options...)
}

// MaxReplyBytes bounds the server's bytes on one connection: the library reads lines of any length. A mail needs 10 KB.
const MaxReplyBytes = 256 << 10

var errTooManyReplies = errors.New("the mail server sends more than 256 KiB on one connection")

// connection ends in time even if the process was suspended.
type connection struct {
	net.Conn // nil: not dialled
	until    time.Time
	left     int // bytes that may still be read
}

func newConnection(ctx context.Context) *connection {
	until, _ := ctx.Deadline()
	return &connection{until: until, left: MaxReplyBytes}
}

func (c *connection) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, errTooManyReplies
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

func (c *connection) Write(p []byte) (int, error) {
	if time.Until(c.until) <= 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Write(p)
}

func (c *connection) SetDeadline(t time.Time) error {
	if t.After(c.until) {
		t = c.until
	}
	return c.Conn.SetDeadline(t)
}

// The library leaves the connection open when hello, TLS or login fails.
func (c *connection) hangUp() {
	if c.Conn != nil {
		_ = c.Close()
	}
}

type refusal struct {
	at  time.Time
	err error
}

// RecordOutcome keeps an attempt's outcome for probes, and reports whether it concerns all mails.
func (s *Sender) RecordOutcome(err error) (concernsAll bool) {
	e, is := errors.AsType[*SubmitError](err)
	switch {
	case err == nil:
		s.refusal.Store(nil)
	case is && e.concernsAll():
		if e.Step != mail.ErrConnCheck && e.Step != mail.ErrSMTPMailFrom {
			s.refusal.Store(&refusal{time.Now(), err})
		}
		return true
	}
	return false
}
