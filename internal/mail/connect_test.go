package mail_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/mail"
	"example.com/twinbox/test/testkit"
)

// startTLS starts a server that speaks TLS from the first byte.
func startTLS(t *testing.T, answers map[testkit.SMTPStage]string) (server *testkit.SMTPServer, roots *x509.CertPool) {
	t.Helper()
	certified := httptest.NewTLSServer(nil)
	t.Cleanup(certified.Close)
	roots = x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener = tls.NewListener(listener, &tls.Config{Certificates: certified.TLS.Certificates})
	return testkit.ServeSMTP(t, listener, nil, testkit.SMTPAnswers(answers)), roots
}

// A mail server counts the connections of one address.
func TestARefusedConnectionIsClosed(t *testing.T) {
	t.Parallel()
	type says = map[testkit.SMTPStage]string
	for name, row := range map[string]struct {
		tls     string
		answers says
	}{
		"no STARTTLS":           {"starttls", nil},
		"no STARTTLS after all": {"opportunistic", says{"EHLO": "250-a\r\n250 STARTTLS", "STARTTLS": "454 later"}},
		"no hello":              {"none", says{"EHLO": "421 busy"}},
		"no login":              {"tls", nil},
		"a refused login":       {"tls", says{"EHLO": "250-a\r\n250 AUTH PLAIN", "AUTH": "535 who", "*": "501 no"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &mail.Sender{Config: mail.Config{TLS: row.tls, Timeout: patience}, From: "no-reply@example.com"}
			server := testkit.StartSMTP(t, testkit.SMTPAnswers(row.answers))
			if row.tls == "tls" {
				s.Config.Username, s.Config.Password = "u", "hunter2"
				server, s.Roots = startTLS(t, row.answers)
			}
			s.Config.Addr = server.Addr()
			err := s.Submit(t.Context(), letter, ready)
			require.Equal(t, failure.Transient, failure.Classify(err), "%v", err)
			server.AwaitHangUp(t)
		})
	}
}

func TestALoginOverTLSFromTheFirstByte(t *testing.T) {
	t.Parallel()
	server, roots := startTLS(t, map[testkit.SMTPStage]string{
		"EHLO": "250-a\r\n250 AUTH PLAIN", "AUTH": "235 2.7.0 come in",
	})
	s := &mail.Sender{
		Config: mail.Config{Addr: server.Addr(), TLS: "tls", Username: "u", Password: "hunter2", Timeout: patience},
		From:   "no-reply@example.com", Roots: roots,
	}
	require.NoError(t, s.Submit(t.Context(), letter, ready))
	require.Len(t, server.Mails(), 1)
	server.AwaitHangUp(t)
	s.Roots = nil
	require.ErrorContains(t, s.Submit(t.Context(), letter, ready), "certificate", "no authority has signed this one")
}
