package notification

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
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// smtpStage is a point in a conversation, before the server's answer: a verb, or one of these.
type smtpStage string

// Conversations meet the stages in this order.
const (
	atConnect smtpStage = "connect" // before the greeting
	atHello   smtpStage = "EHLO"
	atFrom    smtpStage = "MAIL"
	atTo      smtpStage = "RCPT"
	atData    smtpStage = "DATA"    // before 354
	atContent smtpStage = "content" // after 354: the server has read the first line
	atDot     smtpStage = "dot"     // the content is complete, not accepted
	atTaken   smtpStage = "taken"   // accepted, not answered
)

var usualAnswers = map[smtpStage]string{
	atConnect: "220 testkit", atHello: "250-testkit\r\n250 ENHANCEDSTATUSCODES", "STARTTLS": "220 2.0.0 ready",
	atData: "354 send it", "QUIT": "221 2.0.0 bye",
}

// smtpAnswer is an answer at a stage. The zero value is the usual one.
type smtpAnswer struct {
	Say  string          // instead of the usual, such as "451 4.7.1 later"
	Wait <-chan struct{} // stall until it is closed
	Cut  bool            // then hang up
}

// smtpScript decides the answer. Conversations call it concurrently.
type smtpScript func(at smtpStage) smtpAnswer

// answering gives one answer at each of the stages.
func answering(answers map[smtpStage]string) smtpScript {
	return func(at smtpStage) smtpAnswer { return smtpAnswer{Say: answers[at]} }
}

type smtpServer struct {
	listener net.Listener
	script   smtpScript
	secured  *tls.Config // of STARTTLS

	mu    sync.Mutex
	mails []string
	open  int // connections
}

// startSMTP starts a server for the test. A nil script makes it well-behaved.
func startSMTP(t testing.TB, script smtpScript) *smtpServer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return serveSMTP(t, listener, nil, script)
}

// serveSMTP serves the listener. The test's end hangs up on every client; release a stalled script by then, or in a
// later cleanup function of the test.
func serveSMTP(t testing.TB, listener net.Listener, secured *tls.Config, script smtpScript) *smtpServer {
	t.Helper()
	if script == nil {
		script = answering(nil)
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

// awaitHangUp waits until no client is connected. The garbage collector closes a forgotten connection in two minutes.
func (s *smtpServer) awaitHangUp(t *testing.T) {
	t.Helper()
	began := time.Now()
	testkit.Until(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.open == 0
	}, "a client stays")
	require.Less(t, time.Since(began), patience)
}

func (s *smtpServer) count(clients int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += clients
}

func (s *smtpServer) serve(ctx context.Context, serving *sync.WaitGroup) {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.count(1)
		serving.Go(func() {
			defer s.count(-1)
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
	_, err := t.answer(atConnect)
	for err == nil {
		var line string
		if line, err = t.text.ReadLine(); err != nil {
			return err
		}
		verb, _, _ := strings.Cut(line, " ")
		if verb == "HELO" {
			verb = string(atHello)
		}
		isUsual := false
		isUsual, err = t.answer(smtpStage(verb))
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

func (t *talk) answer(at smtpStage) (isUsual bool, err error) {
	a := t.server.script(at)
	if a.Wait != nil {
		<-a.Wait
	}
	if a.Cut {
		return false, errCut
	}
	usual := cmp.Or(usualAnswers[at], "250 2.0.0 yes")
	if at == atHello && t.server.secured != nil {
		usual = "250-testkit\r\n250-STARTTLS\r\n250 ENHANCEDSTATUSCODES"
	}
	if a.Say == "" && (at == atContent || at == atDot) {
		return true, nil
	}
	return a.Say == "", t.text.PrintfLine("%s", cmp.Or(a.Say, usual))
}

func (t *talk) receive() error {
	first, err := t.text.ReadLine()
	if err != nil {
		return err
	}
	if _, err := t.answer(atContent); err != nil {
		return err
	}
	rest, err := io.ReadAll(t.text.DotReader())
	if err != nil {
		return err
	}
	if isUsual, err := t.answer(atDot); err != nil || !isUsual {
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
	_, err = t.answer(atTaken)
	return err
}
