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

// A body with a length and chunks is two requests to two readers.
func TestLengthAndChunksDoNotSmuggle(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	smuggled := "GET /v1/things/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, text := range map[string]string{
		"length first": rawHead + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"chunks first": rawHead + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" + smuggled,
		"whole body": strings.Replace(chunked(goodThing), "\r\n\r\n", "\r\nContent-Length: 4\r\n\r\n", 1) +
			smuggled,
		"two lengths":      rawHead + "Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + smuggled,
		"chunked twice":    rawHead + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"chunked, hidden":  rawHead + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + smuggled,
		"space before":     rawHead + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"negative length":  rawHead + "Content-Length: -1\r\n\r\n" + smuggled,
		"length with plus": rawHead + "Content-Length: +3\r\n\r\n{}\n" + smuggled,
		"bad chunk size":   rawHead + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n" + smuggled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := s.raw(t, text)
			got := conn.answer(t)
			require.NotContains(t, got.body, "smuggled")
			require.Less(t, got.status, 502)
			conn.closed(t)
		})
	}
}

func TestABodyShorterThanItsLengthIsNotTaken(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	conn := s.raw(t, withLength(len(goodThing)+10, goodThing))
	require.NoError(t, conn.Conn.(interface{ CloseWrite() error }).CloseWrite())
	got := conn.answer(t)
	require.Equal(t, http.StatusBadRequest, got.status)
	require.Equal(t, web.CodeBodyUnreadable, got.problem(t).Code)
	conn.closed(t)
	require.Zero(t, s.created.Load())
}

func TestABodyLongerThanItsLengthIsCut(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{ReadHeaderTimeout: 2 * time.Second})
	conn := s.raw(t, withLength(len(goodThing)-5, goodThing))
	require.Equal(t, web.CodeMalformedJSON, conn.answer(t).problem(t).Code)
	require.Equal(t, http.StatusBadRequest, conn.answer(t).status, "the rest is no request")
	conn.closed(t)
	require.Zero(t, s.created.Load())
}

func TestABrokenChunkIsNotTaken(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	conn := s.raw(t, rawHead+"Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":1}\r\n")
	got := conn.answer(t)
	require.Equal(t, web.CodeBodyUnreadable, got.problem(t).Code)
	conn.closed(t)
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

func TestBrokenRequestsNeverReachAHandler(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	for name, text := range map[string]string{
		"no host":          strings.Replace(withLength(len(goodThing), goodThing), "Host: x\r\n", "", 1),
		"two hosts":        strings.Replace(withLength(len(goodThing), goodThing), "Host: x", "Host: x\r\nHost: y", 1),
		"future version":   strings.Replace(withLength(len(goodThing), goodThing), "HTTP/1.1", "HTTP/3.7", 1),
		"not HTTP":         "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
		"folded header":    strings.Replace(withLength(len(goodThing), goodThing), "Host: x", " Host: x", 1),
		"NUL in a header":  strings.Replace(withLength(len(goodThing), goodThing), "Key: k", "Key: k\x00", 1),
		"unknown coding":   rawHead + "Transfer-Encoding: gzip\r\n\r\n" + goodThing,
		"unknown Expect":   rawHead + "Expect: miracles\r\nContent-Length: 2\r\n\r\n{}",
		"space in path":    "GET /v1/things/a b HTTP/1.1\r\nHost: x\r\n\r\n",
		"bad escape":       "GET /v1/things/%zz HTTP/1.1\r\nHost: x\r\n\r\n",
		"control in path":  "GET /v1/things/\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
		"length not a one": rawHead + "Content-Length: ten\r\n\r\n" + goodThing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.raw(t, text).answer(t)
			require.GreaterOrEqual(t, got.status, 400, got.body)
			require.NotEqual(t, http.StatusInternalServerError, got.status)
			require.NotContains(t, got.body, "smuggled")
		})
	}
	t.Cleanup(func() { require.Zero(t, s.created.Load()) })
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
