package smtp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"example.com/twinbox/frame/circuit"
)

// connect opens a connection and brings it to where the first mail may be sent: TLS and login included.
func (s *Sender) connect(ctx context.Context) (*smtp.Client, error) {
	host, _, err := net.SplitHostPort(s.Config.Addr)
	if err != nil {
		return nil, fmt.Errorf("mail server address: %w", err)
	}
	policies := map[string]mail.TLSPolicy{
		"none": mail.NoTLS, "opportunistic": mail.TLSOpportunistic, "starttls": mail.TLSMandatory,
		"tls": mail.TLSOpportunistic, // the library finds the connection encrypted, and STARTTLS not offered
	}
	security := &tls.Config{ServerName: host, RootCAs: s.Roots, MinVersion: tls.VersionTLS12}
	var opened net.Conn
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) { // the mail library knows the host alone
		raw, err := new(net.Dialer).DialContext(ctx, network, s.Config.Addr)
		if err != nil {
			return nil, err
		}
		opened = &bounded{Conn: raw, left: MaxReplyBytes}
		if s.Config.TLS != "tls" {
			return opened, nil
		}
		encrypted := tls.Client(opened, security)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, raw.Close())
		}
		return encrypted, nil
	}
	options := []mail.Option{
		mail.WithTLSPolicy(policies[s.Config.TLS]), mail.WithTimeout(s.Config.Timeout / connectSteps),
		mail.WithTLSConfig(security), mail.WithDialContextFunc(dial),
	}
	if s.Config.Username != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(s.Config.Username),
			mail.WithPassword(string(s.Config.Password)))
	}
	client, err := mail.NewClient(host, options...)
	if err != nil {
		return nil, err
	}
	conn, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		// The library leaves the connection open when hello, TLS or login fails on it; the sender, which comes again every
		// two seconds for as long as that lasts, would fill the server with them.
		if opened != nil {
			_ = opened.Close()
		}
		return nil, err
	}
	// One deadline for the rest, on the connection itself: a process that is stopped and woken up finds it over.
	until, _ := ctx.Deadline()
	return conn, conn.UpdateDeadline(time.Until(until))
}

// connectSteps is how often the mail library starts its timeout anew while it connects: for the connection, for the
// greeting, and for the rest.
const connectSteps = 3

// hangUp says goodbye and does not wait for the answer: the outcome has to be recorded.
func hangUp(conn *smtp.Client) {
	_ = conn.Text.PrintfLine("QUIT")
	_ = conn.Close()
}

// MaxReplyBytes is what a mail server may say in all on one connection, which carries one mail: the greeting, half a
// dozen replies and the certificates of a TLS handshake are some 10 KB. The mail library reads a line to its end and a
// reply to its last line, however long that is.
const MaxReplyBytes = 256 << 10

var errTooManyReplies = errors.New("the mail server says more than 256 KiB on one connection")

// bounded is a connection from which so much may be read and no more.
type bounded struct {
	net.Conn
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errTooManyReplies
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

const (
	// idleProbe is how often the mail server is asked while no mail finds fault with it.
	idleProbe = 5 * time.Minute
	// awayProbe is the longest pause between two probes of a mail server that is away, and so how late its return is
	// noticed.
	awayProbe = 10 * time.Second
)

// NewCircuit is what is known of the mail server: a mail that it does not take begins a probe, and the probe
// decides. Its silence is known after SMTP_TIMEOUT at the latest: a third of it for the mail to find out, another one
// for the probe.
func NewCircuit(sender *Sender, log *slog.Logger, registerer prometheus.Registerer) *circuit.Circuit {
	return circuit.New(circuit.Config{
		Name: "mail server", Probe: sender.probe, Timeout: sender.Config.Timeout, Every: idleProbe,
		RetryMin: time.Second, RetryMax: awayProbe, Log: log, Registerer: registerer,
	})
}

// probe goes as far as every mail has to go: connection, TLS, login and the sender's address. It names no recipient and
// leaves nothing behind. Mails that were just refused behind that point for what concerns all count as well: the sender
// tries one of them every few seconds. That this one stopped hearing of them, since another instance has sent them, is
// known after awayProbe.
func (s *Sender) probe(ctx context.Context) error {
	_, from, err := s.newMsg()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Config.Timeout)
	defer cancel()
	conn, err := s.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer hangUp(conn)
	if err := conn.Mail(from); err != nil {
		return fmt.Errorf("mail from: %w", err)
	}
	if err := conn.Reset(); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	if last := s.refusal.Load(); last != nil && time.Since(last.at) < awayProbe {
		return last.err
	}
	return nil
}

// refusal is an answer to a mail that went further than a probe can.
type refusal struct {
	at  time.Time
	err error
}

// Heard tells the probes how an attempt ended, and reports whether it failed by what concerns all mails.
func (s *Sender) Heard(err error) (concernsAll bool) {
	e, is := errors.AsType[*SubmitError](err)
	switch {
	case err == nil:
		s.refusal.Store(nil)
	case is && e.concernsAll():
		if e.Stage != StageConnect && e.Stage != StageMail {
			s.refusal.Store(&refusal{time.Now(), err})
		}
		return true
	}
	return false
}
