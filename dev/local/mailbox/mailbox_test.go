package mailbox_test

import (
	"io"
	"net"
	"net/http"
	"net/smtp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/twinbox/dev/local/mailbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, cfg mailbox.Config) *mailbox.Mailbox {
	t.Helper()
	m, err := mailbox.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

const welcome = "Message-ID: <m1@example.org>\r\nFrom: Twinbox <no-reply@example.org>\r\nTo: ada@example.org\r\n" +
	"Subject: =?utf-8?q?Best=C3=A4tigen?=\r\nContent-Type: text/plain; charset=utf-8\r\n" +
	"Content-Transfer-Encoding: quoted-printable\r\n\r\n" +
	"Hello Ada,\r\n\r\nhttp://127.0.0.1:8080/verify?token=3Dabc confirms it.\r\n"

func send(t *testing.T, m *mailbox.Mailbox, content string, to ...string) error {
	t.Helper()
	return smtp.SendMail(m.SMTPAddr(), nil, "no-reply@example.org", to, []byte(content))
}

func get(t *testing.T, m *mailbox.Mailbox, path string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+m.HTTPAddr()+path, nil)
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

func TestMailIsShown(t *testing.T) {
	t.Parallel()
	m := start(t, mailbox.Config{})
	require.NoError(t, send(t, m, welcome, "ada@example.org"))
	messages := m.Messages()
	require.Len(t, messages, 1)
	want := mailbox.Message{
		ID: "1", From: "no-reply@example.org", To: []string{"ada@example.org"}, Subject: "Bestätigen",
		MessageID: "m1@example.org", Text: "Hello Ada,\n\nhttp://127.0.0.1:8080/verify?token=abc confirms it.",
		Links: []string{"http://127.0.0.1:8080/verify?token=abc"}, ReceivedAt: messages[0].ReceivedAt,
	}
	require.WithinDuration(t, time.Now(), want.ReceivedAt, time.Minute)
	require.Equal(t, []mailbox.Message{want}, messages)

	response, body := get(t, m, "/view/latest.txt")
	require.Equal(t, "text/plain; charset=utf-8", response.Header.Get("Content-Type"))
	require.Equal(t, want.Text+"\n", body)

	_, body = get(t, m, "/page.js")
	require.Contains(t, body, "fetch(")
	_, body = get(t, m, "/")
	require.Contains(t, body, "Bestätigen")
	require.Contains(t, body, `<a href="http://127.0.0.1:8080/verify?token=abc"`)
}

func TestNotThere(t *testing.T) {
	t.Parallel()
	m := start(t, mailbox.Config{})
	for _, path := range []string{"/view/latest.txt", "/other"} {
		response, _ := get(t, m, path)
		require.Equal(t, http.StatusNotFound, response.StatusCode, path)
	}
	_, body := get(t, m, "/")
	require.Contains(t, body, "No mail has arrived")
	require.Contains(t, body, m.SMTPAddr())
}

func TestNewestFirstAndOldestGo(t *testing.T) {
	t.Parallel()
	m := start(t, mailbox.Config{Keep: 2})
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, send(t, m, "Subject: "+name+"\r\n\r\n", "ada@example.org"))
	}
	require.Equal(t, []string{"c", "b"}, subjects(m))
}

func subjects(m *mailbox.Mailbox) []string {
	var all []string
	for _, message := range m.Messages() {
		all = append(all, message.Subject)
	}
	return all
}

func TestPageEscapes(t *testing.T) {
	t.Parallel()
	m := start(t, mailbox.Config{})
	attack := `<script>alert(1)</script>`
	content := "Subject: " + attack + "\r\n\r\n" + attack +
		" http://127.0.0.1/\"onmouseover=alert(1) javascript:alert(1) http://x/<b>\r\n"
	require.NoError(t, send(t, m, content, "ada@example.org"))
	response, body := get(t, m, "/")
	require.Equal(t, 1, strings.Count(body, "<script"), "its own")
	require.NotContains(t, body, `"onmouseover`)
	require.NotContains(t, body, `href="javascript`)
	require.NotContains(t, body, "<b>")
	require.Contains(t, response.Header.Get("Content-Security-Policy"), "default-src 'none'")
	require.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
}

func TestForeignHostNameIsRefused(t *testing.T) {
	t.Parallel()
	m := start(t, mailbox.Config{})
	for host, want := range map[string]int{
		"evil.example:8025": http.StatusMisdirectedRequest, "10.0.0.1": http.StatusMisdirectedRequest,
		"localhost:8025": http.StatusOK, "[::1]:8025": http.StatusOK, "127.0.0.1": http.StatusOK,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+m.HTTPAddr()+"/", nil)
		require.NoError(t, err)
		request.Host = host
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode, host)
	}
}

func TestStartThatFails(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	for name, cfg := range map[string]mailbox.Config{
		"every interface": {SMTPAddr: ":0"},
		"another machine": {HTTPAddr: "192.0.2.1:0"},
		"no port":         {SMTPAddr: "127.0.0.1"},
		"port taken":      {HTTPAddr: taken.Addr().String()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := mailbox.Start(t.Context(), cfg)
			require.Error(t, err)
		})
	}
}

func TestCloseRightAfterStart(t *testing.T) {
	t.Parallel()
	for range 200 {
		m, err := mailbox.Start(t.Context(), mailbox.Config{})
		require.NoError(t, err)
		require.NoError(t, m.Close())
		require.NoError(t, m.Close(), "a second close is fine")
	}
}
