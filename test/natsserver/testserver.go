package natsserver

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// TestServer keeps its data and address while it is stopped. It ends with the test.
type TestServer struct {
	t           testing.TB
	cfg         Config
	server      *server.Server
	connections []*nats.Conn
}

func ForTest(t testing.TB) *TestServer {
	t.Helper()
	s := &TestServer{t: t, cfg: Config{Addr: testkit.ReservePort(t), Dir: t.TempDir()}}
	s.Start(t)
	t.Cleanup(s.Stop)
	return s
}

// Start returns when the connections of [TestServer.Connect] are back.
func (s *TestServer) Start(t testing.TB) {
	t.Helper()
	var err error
	s.server, err = Start(s.cfg)
	require.NoError(t, err)
	s.await(true)
}

// Stop returns when the connections of [TestServer.Connect] have noticed.
func (s *TestServer) Stop() {
	s.server.Shutdown()
	s.await(false)
}

func (s *TestServer) await(connected bool) {
	for _, connection := range s.connections {
		testkit.Until(s.t, func() bool { return connection.IsConnected() == connected || connection.IsClosed() })
	}
}

func (s *TestServer) URL() string { return "nats://" + s.cfg.Addr }

// Connect opens a connection that comes back after [TestServer.Start]. The test's end closes it.
func (s *TestServer) Connect(t testing.TB) jetstream.JetStream {
	t.Helper()
	connection, err := nats.Connect(s.URL(), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.ReconnectWait(5*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // the default writes to stderr
	require.NoError(t, err)
	t.Cleanup(connection.Close)
	s.connections = append(s.connections, connection)
	js, err := jetstream.New(connection)
	require.NoError(t, err)
	return js
}
