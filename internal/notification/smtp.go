package notification

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"example.com/twinbox/internal/config"
)

// SMTPConfig says how mails leave.
type SMTPConfig struct {
	Addr     string        `env:"ADDR,required" format:"address" doc:"mail server"`
	TLS      string        `env:"TLS" envDefault:"opportunistic" oneof:"none opportunistic starttls tls" doc:"none: never; opportunistic: STARTTLS where offered; starttls: required; tls: from the first byte"`
	Username string        `env:"USERNAME" doc:"account at the mail server; empty: no login"`
	Password config.Secret `env:"PASSWORD" doc:"its password"`
	Timeout  time.Duration `env:"TIMEOUT" envDefault:"20s" min:"100ms" max:"10m" doc:"for one mail, from dialling to the server's answer"`
}

func (c SMTPConfig) problems() []config.Problem {
	var problems []config.Problem
	add := func(variable, detail string) {
		problems = append(problems, config.Problem{Variable: variable, Code: config.CodeConflict, Detail: detail})
	}
	if (c.Username == "") != (c.Password == "") {
		add("SMTP_PASSWORD", "user name and password are set together or not at all")
	}
	if c.Password != "" && c.TLS != "starttls" && c.TLS != "tls" {
		add("SMTP_TLS", "a password is sent over required TLS only: want starttls or tls")
	}
	return problems
}

// verdict is what a failed attempt means for the mail.
type verdict string

const (
	again   verdict = "again"   // the server certainly does not have it: try again later
	refused verdict = "refused" // the server will never take it
	unclear verdict = "unclear" // the connection was lost when the server may have had it all
)

// SubmitError is a failed attempt to hand a letter over. Its text goes to the log and to the mail's row, so it says
// the stage and the codes and leaves out the server's words, which like to repeat the address.
type SubmitError struct {
	verdict verdict
	err     error
}

func (e *SubmitError) Error() string {
	var sendErr *mail.SendError
	switch {
	case !errors.As(e.err, &sendErr):
		return fmt.Sprintf("submit mail: %v", e.err)
	case sendErr.ErrorCode() == 0:
		return fmt.Sprintf("submit mail: %s: no answer", sendErr.Reason)
	}
	return strings.TrimSpace(fmt.Sprintf("submit mail: %s: %d %s",
		sendErr.Reason, sendErr.ErrorCode(), sendErr.EnhancedStatusCode()))
}

func (e *SubmitError) Unwrap() error { return e.err }

// smtpSender hands letters over to one mail server, one connection each.
type smtpSender struct {
	cfg  SMTPConfig
	from string
}

// submit hands one letter over. beforeData is called when the connection stands and nothing of the letter has been
// sent; its error ends the attempt and is returned as it is. Every other error is a [*SubmitError].
func (s *smtpSender) submit(ctx context.Context, letter Letter, beforeData func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	msg, err := s.compose(letter)
	if err != nil {
		return &SubmitError{refused, err}
	}
	client, err := s.client()
	if err != nil {
		return &SubmitError{again, err}
	}
	if err := client.DialWithContext(ctx); err != nil {
		return &SubmitError{again, fmt.Errorf("connect: %w", err)}
	}
	defer func() { _ = client.Close() }() // QUIT; the verdict is in already
	if err := beforeData(ctx); err != nil {
		return err
	}
	if err := client.Send(msg); err != nil {
		return &SubmitError{judge(err), err}
	}
	return nil
}

func (s *smtpSender) compose(letter Letter) (*mail.Msg, error) {
	msg := mail.NewMsg()
	if err := msg.From(s.from); err != nil {
		return nil, fmt.Errorf("compose from: %w", err)
	}
	if err := msg.To(string(letter.To)); err != nil {
		return nil, errors.New("compose to: not an address the mail library takes")
	}
	msg.Subject(letter.Subject)
	msg.SetMessageIDWithValue(letter.MessageID)
	msg.SetDate()
	msg.SetBodyString(mail.TypeTextPlain, letter.Text)
	return msg, nil
}

func (s *smtpSender) client() (*mail.Client, error) {
	host, portText, err := net.SplitHostPort(s.cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("mail server address: %w", err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, fmt.Errorf("mail server port: %w", err)
	}
	policies := map[string]mail.TLSPolicy{
		"none": mail.NoTLS, "opportunistic": mail.TLSOpportunistic, "starttls": mail.TLSMandatory, "tls": mail.NoTLS,
	}
	options := []mail.Option{
		mail.WithPort(port), mail.WithTLSPolicy(policies[s.cfg.TLS]), mail.WithTimeout(s.cfg.Timeout),
	}
	if s.cfg.TLS == "tls" {
		options = append(options, mail.WithSSL())
	}
	if s.cfg.Username != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(s.cfg.Username),
			mail.WithPassword(string(s.cfg.Password)))
	}
	return mail.NewClient(host, options...)
}

// judge reads from where and how an attempt failed what the server can have of the letter. Before the final dot it has
// nothing; after it, an answer from the server is final, and silence is not.
func judge(err error) verdict {
	var sendErr *mail.SendError
	if !errors.As(err, &sendErr) {
		return unclear
	}
	switch code := sendErr.ErrorCode(); {
	case code >= 500 && code < 600:
		return refused
	case code >= 400 && code < 500:
		return again
	case sendErr.Reason == mail.ErrSMTPDataClose:
		return unclear
	}
	return again
}
