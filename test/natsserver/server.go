// Package natsserver runs a NATS server with JetStream inside this process, for examples and tests. It keeps one copy
// of the data.
package natsserver

import (
	"cmp"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

type Config struct {
	// Addr is host:port. Default: a free port of 127.0.0.1.
	Addr string
	// Dir is required. It keeps the streams. They survive the death of the process, and a power cut with Durable.
	Dir string
	// Durable syncs each write to the disk: about ten times slower.
	Durable bool
}

// startLimit covers a busy disk: the start reads every stream.
const startLimit = 30 * time.Second

func Start(cfg Config) (*server.Server, error) {
	addr := cmp.Or(cfg.Addr, "127.0.0.1:0")
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	host, _, _ := net.SplitHostPort(addr) // ResolveTCPAddr has accepted it
	nats, err := server.NewServer(&server.Options{
		Host: host, Port: cmp.Or(at.Port, server.RANDOM_PORT), JetStream: true, StoreDir: cfg.Dir, SyncAlways: cfg.Durable,
		NoSigs: true, // else it takes the process's signals
		NoLog:  true,
	})
	if err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	nats.Start()
	if !nats.ReadyForConnections(startLimit) {
		nats.Shutdown()
		return nil, fmt.Errorf("start nats on %s: not ready after %s; is the port in use?", addr, startLimit)
	}
	return nats, nil
}
