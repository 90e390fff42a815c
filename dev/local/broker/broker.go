// Package broker runs a Kafka-protocol broker inside this process, for `make run` and tests. It has one copy of the
// data and no replication. The services reach it over TCP.
package broker

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"golang.org/x/net/netutil"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/web"
)

type Config struct {
	// Addr is host:port, also advertised. Default: a free port of 127.0.0.1.
	Addr string
	// Dir keeps topics, records and offsets. It survives the death of the process, not a power cut. Only a fixed port
	// keeps a second broker out. Default "": memory only.
	Dir string
	// Log receives warnings and errors. Default: none.
	Log *slog.Logger
}

type Broker struct {
	cluster *kfake.Cluster
	addr    string
	close   sync.Once
	done    chan struct{}
}

// Start loads what [Config.Dir] holds and serves until Close. ctx bounds the start alone. The broker creates no topic
// on demand.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	// A second broker fails here, before it touches any data.
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", cmp.Or(cfg.Addr, "127.0.0.1:0"))
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	if cfg.Dir != "" { // events hold what people wrote
		if err := errors.Join(os.MkdirAll(cfg.Dir, 0o700), os.Chmod(cfg.Dir, 0o700)); err != nil {
			return nil, errors.Join(fmt.Errorf("load broker data: %w", err), ln.Close())
		}
	}
	limited := listener{netutil.LimitListener(ln, web.ShareDescriptors(8))}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.ClusterID("twinbox-local"), kfake.DataDir(cfg.Dir),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return limited, nil }),
		kfake.WithLogger(logAdapter{cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))}),
	)
	if err != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("load broker data: %w", err)
	}
	return &Broker{cluster: cluster, addr: ln.Addr().String(), done: make(chan struct{})}, nil
}

func (b *Broker) Addr() string { return b.addr }

func (b *Broker) Done() <-chan struct{} { return b.done }

// Err is nil: a broker ends by Close alone.
func (b *Broker) Err() error { return nil }

func (b *Broker) Kill() error { return b.Close() }

// Close stops serving and saves the state in Dir. A second call does nothing.
func (b *Broker) Close() error {
	b.close.Do(func() {
		b.cluster.Close()
		close(b.done)
	})
	return nil
}

type listener struct{ net.Listener }

// Accept returns only the error of a closed listener: the broker stops accepting at the first error. Others pass, such
// as too many descriptors.
func (l listener) Accept() (net.Conn, error) {
	for pauses := (failure.Backoff{Min: 5 * time.Millisecond, Max: time.Second}); ; {
		accepted, err := l.Listener.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) {
			return &conn{Conn: accepted}, err
		}
		_ = failure.Sleep(context.Background(), pauses.Next())
	}
}

// maxRequest is that of Apache Kafka. The broker takes as much memory as a request announces.
const maxRequest = 100 << 20

type conn struct {
	net.Conn

	size [4]byte // of the first request
	read int
}

// Read fails if the first bytes are not the size of a request, as with every other protocol of text.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read += copy(c.size[min(c.read, len(c.size)):], p[:n])
	if binary.BigEndian.Uint32(c.size[:]) > maxRequest {
		return 0, errors.New("not a Kafka client")
	}
	return n, err
}

// logAdapter drops the line per request.
type logAdapter struct{ log *slog.Logger }

func (a logAdapter) Logf(level kfake.LogLevel, format string, args ...any) {
	switch level {
	case kfake.LogLevelError:
		a.log.Error("broker error", "detail", fmt.Sprintf(format, args...))
	case kfake.LogLevelWarn:
		a.log.Warn("broker warning", "detail", fmt.Sprintf(format, args...))
	}
}
