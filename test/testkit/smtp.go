package testkit

import (
	"cmp"
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
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// SMTPStage is a point in a conversation, before the server's answer: a verb, or one of these.
type SMTPStage string

// Conversations meet the stages in this order.
const (
	AtConnect SMTPStage = "connect" // before the greeting
	AtHello   SMTPStage = "EHLO"
	AtFrom    SMTPStage = "MAIL"
	AtTo      SMTPStage = "RCPT"
	AtData    SMTPStage = "DATA"    // before 354
	AtContent SMTPStage = "content" // after 354: the server has read the first line
	AtDot     SMTPStage = "dot"     // the content is complete, not accepted
	AtTaken   SMTPStage = "taken"   // accepted, not answered
)

var usualAnswers = map[SMTPStage]string{
	AtConnect: "220 testkit", AtHello: "250-testkit\r\n250 ENHANCEDSTATUSCODES", "STARTTLS": "220 2.0.0 ready",
	AtData: "354 send it", "QUIT": "221 2.0.0 bye",
}

// SMTPAnswer is an answer at a stage. The zero value is the usual one.
type SMTPAnswer struct {
	Say  string          // instead of the usual, such as "451 4.7.1 later"
	Wait <-chan struct{} // stall until it is closed
	Cut  bool            // then hang up
}

// SMTPScript decides the answer. Conversations call it concurrently.
type SMTPScript func(at SMTPStage) SMTPAnswer

// SMTPAnswers gives one answer at each of the stages.
func SMTPAnswers(answers map[SMTPStage]string) SMTPScript {
	return func(at SMTPStage) SMTPAnswer { return SMTPAnswer{Say: answers[at]} }
}

// SMTPServer is a mail server whose answers a script decides.
type SMTPServer struct {
	listener net.Listener
	script   SMTPScript
	secured  *tls.Config // of STARTTLS

	mu    sync.Mutex
	mails []string
	open  atomic.Int64 // connections
}

// StartSMTP starts a server for the test. With SMTPAnswers(nil) it is well-behaved.
func StartSMTP(t testing.TB, script SMTPScript) *SMTPServer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return ServeSMTP(t, listener, nil, script)
}

// ServeSMTP serves the listener. The test's end hangs up on every client; release a stalled script by then, or in a
// later cleanup function of the test.
func ServeSMTP(t testing.TB, listener net.Listener, secured *tls.Config, script SMTPScript) *SMTPServer {
	t.Helper()
	s := &SMTPServer{listener: listener, script: script, secured: secured}
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
func (s *SMTPServer) Addr() string { return s.listener.Addr().String() }

// Mails returns the Message-IDs of the accepted mails in their order.
func (s *SMTPServer) Mails() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

// AwaitHangUp waits until no client is connected. The garbage collector closes a forgotten connection in two minutes.
func (s *SMTPServer) AwaitHangUp(t testing.TB) {
	t.Helper()
	began := time.Now()
	Until(t, func() bool { return s.open.Load() == 0 }, "a client stays")
	require.Less(t, time.Since(began), 30*time.Second)
}

func (s *SMTPServer) serve(ctx context.Context, serving *sync.WaitGroup) {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.open.Add(1)
		serving.Go(func() {
			defer s.open.Add(-1)
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			_ = (&smtpTalk{server: s, conn: conn, text: textproto.NewConn(conn)}).run() // it ends when either side hangs up
		})
	}
}

type smtpTalk struct {
	server *SMTPServer
	conn   net.Conn
	text   *textproto.Conn
}

func (t *smtpTalk) run() error {
	_, err := t.answer(AtConnect)
	for err == nil {
		var line string
		if line, err = t.text.ReadLine(); err != nil {
			return err
		}
		verb, _, _ := strings.Cut(line, " ")
		if verb == "HELO" {
			verb = string(AtHello)
		}
		isUsual := false
		isUsual, err = t.answer(SMTPStage(verb))
		switch {
		case err != nil || !isUsual:
		case verb == "STARTTLS":
			t.text = textproto.NewConn(tls.Server(t.conn, t.server.secured))
		case verb == "DATA":
			err = t.receive()
		}
	}
	return err
}

func (t *smtpTalk) answer(at SMTPStage) (isUsual bool, err error) {
	a := t.server.script(at)
	if a.Wait != nil {
		<-a.Wait
	}
	if a.Cut {
		return false, errors.New("cut")
	}
	usual := cmp.Or(usualAnswers[at], "250 2.0.0 yes")
	if at == AtHello && t.server.secured != nil {
		usual = "250-testkit\r\n250-STARTTLS\r\n250 ENHANCEDSTATUSCODES"
	}
	if a.Say == "" && (at == AtContent || at == AtDot) {
		return true, nil
	}
	return a.Say == "", t.text.PrintfLine("%s", cmp.Or(a.Say, usual))
}

func (t *smtpTalk) receive() error {
	first, err := t.text.ReadLine()
	if err != nil {
		return err
	}
	if _, err := t.answer(AtContent); err != nil {
		return err
	}
	rest, err := io.ReadAll(t.text.DotReader())
	if err != nil {
		return err
	}
	if isUsual, err := t.answer(AtDot); err != nil || !isUsual {
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
	_, err = t.answer(AtTaken)
	return err
}
