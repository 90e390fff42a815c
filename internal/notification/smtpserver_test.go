package notification

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// smtpStage is a point in a conversation, before the server's answer.
type smtpStage string

// Conversations meet the stages in this order.
const (
	atConnect smtpStage = "connect" // before the greeting
	atHello   smtpStage = "hello"   // EHLO
	atFrom    smtpStage = "from"    // MAIL FROM
	atTo      smtpStage = "to"      // RCPT TO
	atData    smtpStage = "data"    // DATA, before 354
	atContent smtpStage = "content" // after 354: the server has read the first line
	atDot     smtpStage = "dot"     // the content is complete, not accepted
	atTaken   smtpStage = "taken"   // accepted, not answered
)

// smtpAnswer is an answer at a stage. The zero value is the usual one.
type smtpAnswer struct {
	Say  string          // instead of the usual, such as "451 4.7.1 later"
	Wait <-chan struct{} // stall until it is closed
	Cut  bool            // then hang up
}

// smtpScript decides the answer. Conversations call it concurrently.
type smtpScript func(at smtpStage) smtpAnswer

type smtpServer struct {
	listener net.Listener
	script   smtpScript
	secured  *tls.Config // nil: it offers no STARTTLS

	mu    sync.Mutex
	mails []string
}

// startSMTP starts a server for the test. A nil script makes it well-behaved.
func startSMTP(t testing.TB, script smtpScript) *smtpServer {
	t.Helper()
	return startSecuredSMTP(t, nil, script)
}

// startSecuredSMTP starts a server that offers STARTTLS. The test's end hangs up on every client; release a stalled
// script by then, or in a later cleanup function of the test.
func startSecuredSMTP(t testing.TB, secured *tls.Config, script smtpScript) *smtpServer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	if script == nil {
		script = func(smtpStage) smtpAnswer { return smtpAnswer{} }
	}
	s := &smtpServer{listener: listener, script: script, secured: secured}
	ctx, hangUp := context.WithCancel(context.WithoutCancel(t.Context()))
	var serving sync.WaitGroup
	serving.Go(func() { s.serve(ctx, &serving) })
	t.Cleanup(func() {
		hangUp()
		_ = listener.Close()
		serving.Wait()
	})
	return s
}

// Addr is host:port.
func (s *smtpServer) Addr() string { return s.listener.Addr().String() }

// Mails returns the Message-IDs of the accepted mails in their order.
func (s *smtpServer) Mails() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

func (s *smtpServer) serve(ctx context.Context, serving *sync.WaitGroup) {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		serving.Go(func() {
			defer conn.Close()
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			_ = (&talk{server: s, conn: conn, text: textproto.NewConn(conn)}).run() // it ends when either side hangs up
		})
	}
}

var errCut = errors.New("cut")

type talk struct {
	server *smtpServer
	conn   net.Conn
	text   *textproto.Conn
}

func (t *talk) run() error {
	_, err := t.answer(atConnect, "220 testkit")
	for err == nil {
		var line string
		if line, err = t.text.ReadLine(); err != nil {
			return err
		}
		verb, _, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "EHLO", "HELO":
			offer := ""
			if t.server.secured != nil {
				offer = "250-STARTTLS\r\n"
			}
			_, err = t.answer(atHello, "250-testkit\r\n"+offer+"250 ENHANCEDSTATUSCODES")
		case "STARTTLS":
			err = t.text.PrintfLine("220 2.0.0 go on")
			t.text = textproto.NewConn(tls.Server(t.conn, t.server.secured))
		case "MAIL":
			_, err = t.answer(atFrom, "250 2.1.0 yes")
		case "RCPT":
			_, err = t.answer(atTo, "250 2.1.5 yes")
		case "DATA":
			err = t.receive()
		case "QUIT":
			return t.text.PrintfLine("221 2.0.0 bye")
		default:
			err = t.text.PrintfLine("250 2.0.0 yes")
		}
	}
	return err
}

func (t *talk) answer(at smtpStage, say string) (isUsual bool, err error) {
	a := t.server.script(at)
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

func (t *talk) receive() error {
	if isUsual, err := t.answer(atData, "354 go on"); err != nil || !isUsual {
		return err
	}
	first, err := t.text.ReadLine()
	if err != nil {
		return err
	}
	if _, err := t.answer(atContent, ""); err != nil {
		return err
	}
	rest, err := io.ReadAll(t.text.DotReader())
	if err != nil {
		return err
	}
	if isUsual, err := t.answer(atDot, ""); err != nil || !isUsual {
		return err
	}
	message, err := mail.ReadMessage(strings.NewReader(first + "\n" + string(rest)))
	if err != nil {
		return err
	}
	id := strings.Trim(message.Header.Get("Message-ID"), "<>")
	t.server.mu.Lock()
	t.server.mails = append(t.server.mails, id)
	t.server.mu.Unlock()
	_, err = t.answer(atTaken, "250 2.0.0 taken")
	return err
}
