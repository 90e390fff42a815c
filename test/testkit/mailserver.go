package testkit

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// MailStage is a point in a conversation, before the server's answer there.
type MailStage string

// The stages, in their order.
const (
	MailConnect MailStage = "connect" // before the greeting
	MailHello   MailStage = "hello"   // EHLO
	MailFrom    MailStage = "from"    // MAIL FROM
	MailTo      MailStage = "to"      // RCPT TO
	MailData    MailStage = "data"    // DATA, before 354
	MailContent MailStage = "content" // after 354: the server has read the first line
	MailDot     MailStage = "dot"     // the content is complete; the server has not taken it
	MailTaken   MailStage = "taken"   // the server has taken it, and has not said so
)

// MailAnswer is what the server does at a stage; the zero value is the usual.
type MailAnswer struct {
	Say  string          // instead of the usual, such as "451 4.7.1 later"
	Wait <-chan struct{} // stall until it is closed
	Cut  bool            // then hang up without a word
}

// MailScript decides the answer. to is known from stage MailTo on. It is called from several conversations at once.
type MailScript func(at MailStage, to string) MailAnswer

// Mail is one that the server took.
type Mail struct{ To, MessageID, Content string }

// MailServer is a running server.
type MailServer struct {
	listener net.Listener
	script   MailScript
	secured  *tls.Config // nil: it offers no STARTTLS

	mu     sync.Mutex
	mails  []Mail
	conns  map[net.Conn]bool
	ended  bool
	talks  sync.WaitGroup
	served chan struct{}
}

// StartMailServer starts a server for the test. A nil script makes it well-behaved.
func StartMailServer(t testing.TB, script MailScript) *MailServer {
	t.Helper()
	return StartSecuredMailServer(t, nil, script)
}

// StartSecuredMailServer starts a server that offers STARTTLS.
func StartSecuredMailServer(t testing.TB, secured *tls.Config, script MailScript) *MailServer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	if script == nil {
		script = func(MailStage, string) MailAnswer { return MailAnswer{} }
	}
	s := &MailServer{
		listener: listener, script: script, secured: secured,
		conns: map[net.Conn]bool{}, served: make(chan struct{}),
	}
	go s.serve()
	t.Cleanup(s.close)
	return s
}

// Addr is host:port.
func (s *MailServer) Addr() string { return s.listener.Addr().String() }

// Mails are those that the server took, in the order in which it did.
func (s *MailServer) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.mails...)
}

func (s *MailServer) serve() {
	defer close(s.served)
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = true
		if s.ended {
			_ = conn.Close()
		}
		s.mu.Unlock()
		s.talks.Go(func() {
			talk{server: s, conn: conn, text: textproto.NewConn(conn)}.run()
			_ = conn.Close()
		})
	}
}

// close hangs up on every client. Scripts that stall must have been released, or be released by an earlier cleanup.
func (s *MailServer) close() {
	s.mu.Lock()
	s.ended = true
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	_ = s.listener.Close()
	<-s.served
	s.talks.Wait()
}

func (s *MailServer) take(m Mail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, m)
}

// errCut ends a conversation.
var errCut = errors.New("cut")

// talk is one conversation.
type talk struct {
	server *MailServer
	conn   net.Conn
	text   *textproto.Conn
	to     string
}

func (t talk) run() {
	if _, err := t.answer(MailConnect, "220 testkit"); err != nil {
		return
	}
	for {
		line, err := t.text.ReadLine()
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "EHLO", "HELO":
			offer := ""
			if t.server.secured != nil {
				offer = "250-STARTTLS\r\n"
			}
			_, err = t.answer(MailHello, "250-testkit\r\n"+offer+"250 ENHANCEDSTATUSCODES")
		case "STARTTLS":
			if err = t.text.PrintfLine("220 2.0.0 go on"); err == nil {
				t.text = textproto.NewConn(tls.Server(t.conn, t.server.secured))
			}
		case "MAIL":
			_, err = t.answer(MailFrom, "250 2.1.0 yes")
		case "RCPT":
			t.to = strings.Trim(strings.TrimPrefix(rest, "TO:"), "<>")
			_, err = t.answer(MailTo, "250 2.1.5 yes")
		case "DATA":
			err = t.data()
		case "QUIT":
			_ = t.text.PrintfLine("221 2.0.0 bye")
			return
		default:
			err = t.text.PrintfLine("250 2.0.0 yes")
		}
		if err != nil {
			return
		}
	}
}

// answer plays a stage. usual reports whether the script had nothing else to say.
func (t talk) answer(at MailStage, say string) (usual bool, err error) {
	a := t.server.script(at, t.to)
	if a.Wait != nil {
		<-a.Wait
	}
	switch {
	case a.Cut:
		return false, errCut
	case a.Say != "":
		return false, t.text.PrintfLine("%s", a.Say)
	case say == "":
		return true, nil
	}
	return true, t.text.PrintfLine("%s", say)
}

func (t talk) data() error {
	if usual, err := t.answer(MailData, "354 go on"); err != nil || !usual {
		return err
	}
	var content strings.Builder
	m := Mail{To: t.to}
	for first := true; ; first = false {
		line, err := t.text.ReadLine()
		if err != nil {
			return err
		}
		if first {
			if _, err := t.answer(MailContent, ""); err != nil {
				return err
			}
		}
		if line == "." {
			break
		}
		if id, found := strings.CutPrefix(line, "Message-ID: "); found {
			m.MessageID = strings.Trim(id, "<>")
		}
		fmt.Fprintln(&content, line)
	}
	m.Content = content.String()
	if usual, err := t.answer(MailDot, ""); err != nil || !usual {
		return err
	}
	t.server.take(m)
	_, err := t.answer(MailTaken, "250 2.0.0 taken")
	return err
}
