package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/lease"
)

// Config says how mails leave.
type Config struct {
	Addr     string        `env:"ADDR,required" format:"address" doc:"mail server"`
	TLS      string        `env:"TLS" envDefault:"opportunistic" oneof:"none opportunistic starttls tls" doc:"none: never; opportunistic: STARTTLS where offered; starttls: required; tls: from the first byte"`
	Username string        `env:"USERNAME" doc:"account at the mail server; empty: no login"`
	Password config.Secret `env:"PASSWORD" doc:"its password"`
	Timeout  time.Duration `env:"TIMEOUT" envDefault:"20s" min:"100ms" max:"10m" doc:"for one mail, from dialling to the server's answer; at most a third of it for each of dialling, the greeting, and TLS with login"`
}

func (c Config) Rules() []config.Rule {
	return []config.Rule{
		{
			Variable: "SMTP_PASSWORD", Holds: (c.Username == "") == (c.Password == ""),
			Text: "is set together with SMTP_USERNAME or not at all",
		},
		{
			Variable: "SMTP_TLS", Holds: c.Password == "" || c.TLS == "starttls" || c.TLS == "tls",
			Text: "must be starttls or tls with SMTP_PASSWORD: a password is sent over TLS only",
		},
	}
}

// Letter is a mail written out.
type Letter struct {
	MessageID string // the same for every attempt, so that a receiver can tell a second copy
	To        string
	Subject   string
	Text      string
	WrittenAt time.Time
}

// Sender hands letters over to one mail server, one connection and one recipient each: a connection that the server has
// spoiled spoils no other mail, and no answer is about two people.
type Sender struct {
	Config Config
	From   string
	Roots  *x509.CertPool // of the server's certificate; nil: the system's
	// refusal is the last answer that concerns all mails and that a probe does not get to hear.
	refusal atomic.Pointer[refusal]
	// Written, if set, is called between the content and begin, with the end of the server's answer. For tests.
	Written func(answered <-chan struct{})
}

// Submit hands one letter over. begin is called when all of the letter is written but the final dot, without which no
// server accepts it. Its error ends the attempt and is returned as it is; every other error is marked with what it
// means for the mail, see [lease.Effect].
func (s *Sender) Submit(ctx context.Context, letter Letter, begin func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.Config.Timeout)
	defer cancel()
	msg, from, to, err := s.compose(letter)
	if err != nil {
		return failure.AsPermanent(err)
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return failure.AsTransient(&SubmitError{Stage: StageConnect, err: err})
	}
	defer hangUp(conn)
	fault.Here("smtp.connected")
	if err := conn.Mail(from); err != nil {
		return answered(StageMail, err)
	}
	if err := conn.Rcpt(to); err != nil {
		return answered(StageRcpt, err)
	}
	fault.Here("smtp.recipient")
	return s.handOver(ctx, conn, msg, begin)
}

// handOver writes the content, calls begin, and writes the final dot, which is the irreversible step. A server that has
// not read it must treat the mail as never sent (RFC 5321, 4.1.1.10), so what ends the attempt before leaves no doubt.
// After it, the answer says what the server has, and silence says nothing.
func (s *Sender) handOver(
	ctx context.Context, conn *smtp.Client, msg *mail.Msg, begin func(context.Context) error,
) error {
	data, err := conn.Data()
	if err != nil {
		return answered(StageData, err)
	}
	fault.Here("smtp.data")
	answer, complete := &answer{done: make(chan struct{})}, false
	go func() {
		defer close(answer.done)
		_, _, answer.err = conn.Text.ReadResponse(accepted)
	}()
	defer func() {
		if !complete {
			_ = conn.Close() // and not QUIT, which would end the content with the dot
		}
		<-answer.done
	}()
	closer, ok := data.(*smtp.DataCloser)
	if !ok {
		return failure.AsPermanent(errors.New("the mail library writes content in another way"))
	}
	if _, err = msg.WriteTo(data); err == nil {
		err = conn.Text.W.Flush()
	}
	if err != nil {
		return answered(StageContent, err)
	}
	if s.Written != nil {
		s.Written(answer.done)
	}
	fault.Here("smtp.content")
	if err := answer.early(); err != nil {
		return answered(StageContent, err)
	}
	if err := begin(ctx); err != nil {
		return err
	}
	fault.Here("smtp.submitting")
	if until, _ := ctx.Deadline(); time.Until(until) <= 0 { // stopped since begin, and woken up
		return lease.Undone(&SubmitError{Stage: StageContent, err: context.DeadlineExceeded})
	}
	if err := answer.early(); err != nil {
		return answered(StageContent, err)
	}
	if err := closer.WriteCloser.Close(); err != nil {
		return &SubmitError{Stage: StageDot, err: err}
	}
	complete = true
	fault.Here("smtp.dot")
	if <-answer.done; answer.err != nil {
		return answered(StageDot, answer.err)
	}
	fault.Here("smtp.accepted")
	return nil
}

// answer is what the server says to the content. It is read from before the content is written, so that a server that
// refuses it or hangs up is heard while the final dot can still be kept back. Its end is that of the connection.
type answer struct {
	done chan struct{}
	err  error
}

// early is the server's refusal, if there is one by now.
func (a *answer) early() error {
	select {
	case <-a.done:
		return a.err
	default:
		return nil
	}
}

// accepted is the first digit of a yes.
const accepted = 2

// compose makes a letter into what the mail library sends, and its envelope.
func (s *Sender) compose(letter Letter) (msg *mail.Msg, from, to string, err error) {
	msg = mail.NewMsg()
	if err := msg.From(s.From); err != nil {
		return nil, "", "", fmt.Errorf("compose from: %w", err)
	}
	if err := msg.To(letter.To); err != nil {
		return nil, "", "", errors.New("compose to: not an address the mail library takes")
	}
	msg.Subject(letter.Subject)
	msg.SetMessageIDWithValue(letter.MessageID)
	msg.SetDateWithValue(letter.WrittenAt)
	msg.SetBodyString(mail.TypeTextPlain, letter.Text)
	from, _ = msg.GetSender(false) // it has one, as said above, and one recipient
	recipients, _ := msg.GetRecipients()
	return msg, from, recipients[0], nil
}

// connect opens a connection and brings it to where the first mail may be sent: TLS and login included.
func (s *Sender) connect(ctx context.Context) (*smtp.Client, error) {
	host, _, _ := net.SplitHostPort(s.Config.Addr) // as its format says; the mail library takes no empty one
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
