package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/web"
	"example.com/twinbox/test/testkit"
)

// These tests write bytes that no HTTP client sends.

const rawHead = "POST /v1/things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n"

func withLength(n int, body string) string {
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", rawHead, n, body)
}

func chunked(body string) string {
	return fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", rawHead, len(body), body)
}

func TestAChunkedBodyEndsItsConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	conn := s.raw(t, chunked(goodThing)+"GET /v1/things/smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
	got := conn.answer(t)
	require.Equal(t, http.StatusCreated, got.status, got.body)
	conn.closed(t)
}

func TestABodyShorterThanItsLengthIsNotTaken(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	for _, text := range []string{
		withLength(len(goodThing)+10, goodThing), rawHead + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":1}\r\n",
	} {
		conn := s.raw(t, text)
		require.NoError(t, conn.Conn.(interface{ CloseWrite() error }).CloseWrite())
		got := conn.answer(t)
		require.Equal(t, http.StatusBadRequest, got.status)
		require.Equal(t, web.CodeBodyUnreadable, got.problem(t).Code)
		conn.closed(t)
	}
	require.Zero(t, s.created.Load())
}

func TestASlowBodyTimesOut(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{ReadTimeout: 200 * time.Millisecond})
	for name, text := range map[string]string{
		"length": withLength(len(goodThing), goodThing[:10]),
		"chunks": rawHead + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"ema\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := s.raw(t, text)
			got := conn.answer(t)
			require.Equal(t, http.StatusRequestTimeout, got.status)
			require.Equal(t, web.CodeRequestTimeout, got.problem(t).Code)
			conn.closed(t)
		})
	}
}

func TestSlowHeadersEndTheConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{ReadHeaderTimeout: 100 * time.Millisecond})
	s.raw(t, "POST /v1/things HTTP/1.1\r\nHost: x\r\nX-Slow: ").closed(t)
}

func TestAnIdleConnectionEnds(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{IdleTimeout: 100 * time.Millisecond})
	conn := s.raw(t, "GET /v1/things/1 HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Equal(t, http.StatusOK, conn.answer(t).status)
	conn.closed(t)
}

func TestLargeHeadersAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	conn := s.raw(t, "GET / HTTP/1.1\r\nHost: x\r\nX-Large: "+strings.Repeat("x", 40<<10)+"\r\n\r\n")
	answer, err := http.ReadResponse(conn.reader, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answer.StatusCode)
	_ = answer.Body.Close() // the body may be cut off
}

func TestAnAnnouncedLargeBodyIsRefusedUnread(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	head := rawHead + "Expect: 100-continue\r\nContent-Length: 10485760\r\n\r\n"
	conn := s.raw(t, head)
	got := conn.answer(t)
	require.Equal(t, http.StatusRequestEntityTooLarge, got.status, "the body must not be asked for")
	require.Equal(t, web.CodeBodyTooLarge, got.problem(t).Code)
	conn.closed(t)
}

func TestAClientThatHangsUpIsNoError(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	require.NoError(t, s.raw(t, withLength(len(goodThing), goodThing[:10])).Close())
	require.NoError(t, s.raw(t, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n").Close())
	testkit.Until(t, func() bool { // nothing signals the end of a log line
		log := s.log.String()
		return strings.Contains(log, `"route":"/wait"`) && strings.Contains(log, `"route":"/v1/things"`)
	})
	require.NotContains(t, s.log.String(), `"level":"ERROR"`)
	require.Zero(t, s.created.Load())
}
