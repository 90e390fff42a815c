package natsserver

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// TestServer keeps its data, and its address, while it is stopped. It ends with the test.
type TestServer struct {
	dir   string
	front net.Listener

	mu          sync.Mutex
	server      *Server // nil: stopped
	connections []*nats.Conn
}

// ForTest starts a server that the test can stop and start.
func ForTest(t testing.TB) *TestServer {
	t.Helper()
	front, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &TestServer{dir: t.TempDir(), front: front}
	s.Start(t)
	var bridges sync.WaitGroup
	bridges.Go(func() { s.accept(&bridges) })
	t.Cleanup(func() {
		s.Stop()
		_ = front.Close()
		bridges.Wait()
	})
	return s
}

// accept leads connections to the server of the moment: another process may take a port that is given up between a
// stop and a start.
func (s *TestServer) accept(bridges *sync.WaitGroup) {
	for {
		client, err := s.front.Accept()
		if err != nil {
			return
		}
		inside, err := s.InProcessConn()
		if err != nil {
			_ = client.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{client, inside}, {inside, client}} {
			bridges.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = pair[0].Close()
				_ = pair[1].Close()
			})
		}
	}
}

// Start starts it again, with what it had, and returns when the connections of [TestServer.Connect] are back.
func (s *TestServer) Start(t testing.TB) {
	t.Helper()
	started, err := Start(t.Context(), Config{Dir: s.dir})
	require.NoError(t, err)
	s.mu.Lock()
	s.server = started
	s.mu.Unlock()
	s.await(true)
}

// Stop stops it, and returns when its connections know that. A server that is stopped stays so.
func (s *TestServer) Stop() {
	s.mu.Lock()
	stopping := s.server
	s.server = nil
	s.mu.Unlock()
	if stopping != nil {
		_ = stopping.Close()
		s.await(false)
	}
}

// noticeLimit is how long a connection may take to notice.
const noticeLimit = 30 * time.Second

// await returns when all connections are up, or all are not.
func (s *TestServer) await(connected bool) {
	s.mu.Lock()
	connections := s.connections
	s.mu.Unlock()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(noticeLimit); time.Now().Before(limit); <-tick.C {
		noticed := true
		for _, connection := range connections {
			noticed = noticed && (connection.IsConnected() == connected || connection.IsClosed())
		}
		if noticed {
			return
		}
	}
}

// URL is where programs connect.
func (s *TestServer) URL() string { return "nats://" + s.front.Addr().String() }

// InProcessConn implements nats.InProcessConnProvider.
func (s *TestServer) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil, errors.New("the server is stopped")
	}
	return s.server.InProcessConn()
}

// Connect connects without a port, so that the connection finds the server again after a start. It is closed with the
// test, before the server ends.
func (s *TestServer) Connect(t testing.TB) jetstream.JetStream {
	t.Helper()
	connection, err := nats.Connect("", nats.InProcessServer(s), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.ReconnectWait(5*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // the default writes to stderr
	require.NoError(t, err)
	t.Cleanup(connection.Close)
	s.mu.Lock()
	s.connections = append(s.connections, connection)
	s.mu.Unlock()
	js, err := jetstream.New(connection)
	require.NoError(t, err)
	return js
}
