package notification

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/mail"
)

func doorkeeper(t *testing.T, listener net.Listener, answers map[string]string) <-chan error {
	t.Helper()
	t.Cleanup(func() { _ = listener.Close() })
	ended := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			ended <- err
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(conn, "220 doorkeeper\r\n")
		for lines := bufio.NewScanner(conn); ; {
			if !lines.Scan() {
				ended <- errors.Join(io.EOF, lines.Err())
				return
			}
			verb, _, _ := strings.Cut(lines.Text(), " ")
			if answer := answers[verb]; answer != "" {
				_, _ = io.WriteString(conn, answer+"\r\n")
			}
		}
	}()
	return ended
}

// A mail server counts the connections of one address.
func TestARefusedConnectionIsClosed(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	type says = map[string]string
	for name, row := range map[string]struct {
		tls     string
		answers says
	}{
		"no STARTTLS":           {"starttls", says{"EHLO": "250 doorkeeper"}},
		"no STARTTLS after all": {"opportunistic", says{"EHLO": "250-a\r\n250 STARTTLS", "STARTTLS": "454 later"}},
		"no hello":              {"none", says{"EHLO": "421 busy", "HELO": "421 busy"}},
		"no login":              {"tls", says{"EHLO": "250 doorkeeper"}},
		"a refused login": {"tls", says{
			"EHLO": "250-a\r\n250 AUTH PLAIN", "AUTH": "535 who", "*": "501 no", "QUIT": "221 bye",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			s := &mail.Sender{
				Config: mail.Config{Addr: listener.Addr().String(), TLS: row.tls, Timeout: patience},
				From:   "no-reply@example.com", Roots: roots,
			}
			if row.tls == "tls" {
				s.Config.Username, s.Config.Password = "u", "hunter2"
				listener = tls.NewListener(listener, &tls.Config{Certificates: certified.TLS.Certificates})
			}
			ended := doorkeeper(t, listener, row.answers)
			err = s.Submit(t.Context(), letter, ready)
			require.Equal(t, failure.Transient, failure.Classify(err), "%v", err)
			at := <-ended
			require.ErrorIs(t, at, io.EOF)
			require.NotErrorIs(t, at, os.ErrDeadlineExceeded, "the client stayed")
		})
	}
}

func TestALoginOverTLSFromTheFirstByte(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := doorkeeper(t, tls.NewListener(listener, &tls.Config{Certificates: certified.TLS.Certificates}),
		map[string]string{
			"EHLO": "250-a\r\n250 AUTH PLAIN", "AUTH": "235 2.7.0 come in", "MAIL": "250 yes", "RCPT": "250 yes",
			"DATA": "354 go on", ".": "250 taken", "QUIT": "221 bye",
		})
	s := &mail.Sender{
		Config: mail.Config{
			Addr: listener.Addr().String(), TLS: "tls", Username: "u", Password: "hunter2", Timeout: patience,
		},
		From: "no-reply@example.com", Roots: roots,
	}
	require.NoError(t, s.Submit(t.Context(), letter, ready))
	require.ErrorIs(t, <-ended, io.EOF)

	s.Roots = nil
	listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.Config.Addr = listener.Addr().String()
	doorkeeper(t, tls.NewListener(listener, &tls.Config{Certificates: certified.TLS.Certificates}), nil)
	require.ErrorContains(t, s.Submit(t.Context(), letter, ready), "certificate", "no authority has signed this one")
}
