package mailbox

import (
	"errors"
	"io"
	"log"
	"time"

	"github.com/emersion/go-smtp"
)

// ErrCut makes [Config.Reply] hang up without an answer.
var ErrCut = errors.New("cut the connection")

// Refuse makes [Config.Reply] answer with an SMTP code, such as 421, 451 or 550.
func Refuse(code int, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 0, 0}, Message: text}
}

const (
	idleTimeout     = 5 * time.Minute
	maxMessageBytes = 256 << 10
)

func (m *Mailbox) newSMTP() *smtp.Server {
	server := smtp.NewServer(smtp.BackendFunc(func(conn *smtp.Conn) (smtp.Session, error) {
		return &session{mailbox: m, conn: conn}, nil
	}))
	server.Domain = "localhost"
	server.MaxMessageBytes = maxMessageBytes
	server.MaxRecipients = 50
	server.EnableSMTPUTF8 = true
	server.ReadTimeout, server.WriteTimeout = idleTimeout, idleTimeout
	server.ErrorLog = log.New(io.Discard, "", 0) // clients that hang up
	return server
}

type session struct {
	mailbox *Mailbox
	conn    *smtp.Conn
	from    string
	to      []string
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.from = from
	return s.ask("mail", "")
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if err := s.ask("rcpt", to); err != nil {
		return err
	}
	s.to = append(s.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := s.ask("data", s.to[0]); err != nil {
		return err
	}
	s.mailbox.keep(s.from, s.to, raw)
	return s.ask("kept", s.to[0])
}

func (s *session) Reset() { s.from, s.to = "", nil }

func (s *session) Logout() error { return nil }

func (s *session) ask(stage, to string) error {
	err := s.mailbox.cfg.Reply(stage, s.from, to)
	if errors.Is(err, ErrCut) {
		return errors.Join(err, s.conn.Conn().Close()) // the answer is written to a closed connection
	}
	return err
}
