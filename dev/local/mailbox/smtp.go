package mailbox

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/emersion/go-smtp"
)

// ErrCut makes [Config.Reply] close the connection without an answer.
var ErrCut = errors.New("cut the connection")

// Refuse makes [Config.Reply] answer with an SMTP code, such as 421, 451 or 550.
func Refuse(code int, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 0, 0}, Message: text}
}

const idleTimeout = 5 * time.Minute

func newSMTP(cfg Config, store *store) *smtp.Server {
	server := smtp.NewServer(smtp.BackendFunc(func(conn *smtp.Conn) (smtp.Session, error) {
		return &session{conn: conn, reply: cfg.Reply, store: store}, nil
	}))
	server.Domain = "localhost"
	server.MaxMessageBytes = maxMessageBytes
	server.MaxRecipients = 50
	server.EnableSMTPUTF8 = true
	server.ReadTimeout, server.WriteTimeout = idleTimeout, idleTimeout
	server.ErrorLog = smtpLog{cfg.Log}
	return server
}

// session is one connection.
type session struct {
	conn  *smtp.Conn
	reply func(stage, from, to string) error
	store *store
	from  string
	to    []string
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

// Data keeps the mail before it says so: what the client was told is accepted survives this process.
func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := s.ask("data", s.to[0]); err != nil {
		return err
	}
	if err := s.store.add(envelope{From: s.from, To: s.to, ReceivedAt: time.Now().UTC()}, raw); err != nil {
		return fmt.Errorf("keep mail: %w", err)
	}
	return s.ask("kept", s.to[0])
}

func (s *session) Reset() { s.from, s.to = "", nil }

func (s *session) Logout() error { return nil }

func (s *session) ask(stage, to string) error {
	err := s.reply(stage, s.from, to)
	if errors.Is(err, ErrCut) {
		return errors.Join(err, s.conn.Conn().Close()) // the answer is written to a closed connection
	}
	return err
}

type smtpLog struct{ log *slog.Logger }

func (l smtpLog) Printf(format string, args ...any) {
	l.log.Info("smtp connection", "detail", fmt.Sprintf(format, args...))
}

func (l smtpLog) Println(args ...any) { l.log.Info("smtp connection", "detail", fmt.Sprint(args...)) }
