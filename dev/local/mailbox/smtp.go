package mailbox

import (
	"io"
	"log"
	"strings"
	"time"

	"github.com/emersion/go-smtp"
)

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
	return nil
}

// An address such as refuse@example.org has no mailbox. A mail to one such as uncertain@example.org is taken, and the
// connection ends without an answer.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "refuse") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such mailbox"}
	}
	s.to = append(s.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mailbox.keep(s.from, s.to, raw)
	if strings.HasPrefix(s.to[0], "uncertain") {
		return s.conn.Conn().Close()
	}
	return nil
}

func (s *session) Reset() { s.from, s.to = "", nil }

func (s *session) Logout() error { return nil }
