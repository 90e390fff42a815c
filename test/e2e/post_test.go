package e2e

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"
)

// post is a mail server that may have no room for mails, or take them and hang up without an answer.
type post struct {
	addr            string
	isFull, hangsUp atomic.Bool
	taken           atomic.Int32
}

func startPost(t *testing.T) *post {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &post{addr: listener.Addr().String()}
	server := smtp.NewServer(smtp.BackendFunc(func(conn *smtp.Conn) (smtp.Session, error) {
		return postSession{p, conn}, nil
	}))
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		_ = server.Close()
		_ = listener.Close()
		serving.Wait()
	})
	return p
}

type postSession struct {
	post *post
	conn *smtp.Conn
}

func (s postSession) Mail(string, *smtp.MailOptions) error { return nil }

func (s postSession) Rcpt(string, *smtp.RcptOptions) error {
	if s.post.isFull.Load() {
		return &smtp.SMTPError{Code: 452, EnhancedCode: smtp.EnhancedCode{4, 2, 2}, Message: "mailbox full"}
	}
	return nil
}

func (s postSession) Data(r io.Reader) error {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	s.post.taken.Add(1)
	if s.post.hangsUp.Load() {
		return errors.Join(errors.New("hung up"), s.conn.Conn().Close())
	}
	return nil
}

func (s postSession) Reset() {}

func (s postSession) Logout() error { return nil }
