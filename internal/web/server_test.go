package web_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/web"
	"example.com/twinbox/test/testkit"
)

func (s *testServer) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.finished:
		s.finished <- nil // for the cleanup
		return err
	case <-time.After(patience):
		require.Fail(t, "the server did not stop")
		return nil
	}
}

const holdRequest = "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"

func TestDrainEndsRequestsInFlightAndTakesNoOther(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{DrainTimeout: patience})
	inFlight := s.raw(t, holdRequest)
	<-s.entered
	kept := s.raw(t, "GET /v1/things/1 HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Equal(t, http.StatusOK, kept.answer(t).status)
	s.stop()

	testkit.Until(t, func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	kept.closed(t)
	require.Zero(t, s.created.Load())

	close(s.release)
	got := inFlight.answer(t)
	require.Equal(t, http.StatusOK, got.status, "a request in flight must end")
	require.True(t, got.closes)
	require.NoError(t, s.wait(t))
}

func TestDrainCutsOffWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{RequestTimeout: time.Hour}, &web.Server{DrainTimeout: 100 * time.Millisecond})
	conn := s.raw(t, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
	held := s.raw(t, holdRequest)
	<-s.entered // the outcome does not depend on the other request
	s.stop()
	require.ErrorContains(t, s.wait(t), "requests took longer than 100ms")
	close(s.release)
	held.closed(t)
	_ = conn.Close()
}

func TestAnIdleServerStopsAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{DrainTimeout: time.Hour})
	kept := s.raw(t, "GET /v1/things/1 HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Equal(t, http.StatusOK, kept.answer(t).status)
	s.stop()
	require.NoError(t, s.wait(t))
	kept.closed(t)
}

// Browsers open spare connections, and load balancers probe.
func TestAConnectionWithoutARequestIsNoFailureOfTheDrain(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{DrainTimeout: 100 * time.Millisecond})
	silent := s.raw(t, "")
	kept := s.raw(t, "GET /v1/things/1 HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Equal(t, http.StatusOK, kept.answer(t).status) // accepted later, so the server has the other too
	s.stop()
	require.NoError(t, s.wait(t))
	silent.closed(t)
	kept.closed(t)
}

func TestStartAndStopUnderLoad(t *testing.T) {
	t.Parallel()
	for range 6 {
		s := serve(t, web.Config{}, &web.Server{DrainTimeout: patience})
		transport := &http.Transport{}
		done := make(chan int)
		for range 4 {
			go func() { done <- hammer(t.Context(), transport, s.addr) }()
		}
		testkit.Until(t, func() bool { return s.created.Load() > 20 })
		s.stop()
		require.NoError(t, s.wait(t))
		accepted := 0
		for range 4 {
			accepted += <-done
		}
		transport.CloseIdleConnections()
		require.EqualValues(t, s.created.Load(), accepted, "what was carried out must have been answered")
	}
}

// It counts the 201 answers.
func hammer(ctx context.Context, transport *http.Transport, addr string) int {
	accepted := 0
	for {
		body := strings.NewReader(goodThing)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/things", body)
		if err != nil {
			return accepted
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", "k")
		res, err := transport.RoundTrip(req)
		if err != nil {
			return accepted
		}
		_ = res.Body.Close()
		switch res.StatusCode {
		case http.StatusCreated:
			accepted++
		default:
			return accepted
		}
	}
}

func TestSharesLeaveDescriptorsForTheRest(t *testing.T) {
	t.Parallel()
	n := web.Descriptors()
	require.Positive(t, n)
	all := web.ShareDescriptors(4) + web.ShareDescriptors(8) + 4*web.ShareDescriptors(16)
	require.LessOrEqual(t, all, n*2/3)
	require.Equal(t, 8, web.ShareDescriptors(1<<40))
	require.LessOrEqual(t, web.ShareDescriptors(1), 10_000)
}

func TestAFullServerLetsOthersWait(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{MaxConnections: 1})
	first := s.raw(t, holdRequest)
	<-s.entered
	second := s.raw(t, holdRequest)
	select {
	case <-s.entered:
		t.Fatal("a second connection is open")
	case <-time.After(50 * time.Millisecond):
	}
	s.release <- struct{}{}
	require.Equal(t, http.StatusOK, first.answer(t).status)
	require.NoError(t, first.Close())
	<-s.entered
	close(s.release)
	require.Equal(t, http.StatusOK, second.answer(t).status)
}
