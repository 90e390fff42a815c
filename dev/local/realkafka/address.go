package realkafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Ports that a system does not give to a request for any port: Linux gives those from 32768 on, macOS those from 49152
// on.
const (
	lowestPort  = 20_000
	highestPort = 32_000
)

// pickAddr replaces port 0 by a free port and reports one that is taken. The port is free again when this returns, and
// Kafka takes it seconds later. Meanwhile only a process that names it can take it, not one that asks for any port;
// then Kafka does not start, and says so.
func pickAddr(ctx context.Context, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("reserve address for kafka: %w", err)
	}
	if port != "0" {
		return addr, tryAddr(ctx, addr)
	}
	for {
		addr = net.JoinHostPort(host, strconv.Itoa(lowestPort+rand.IntN(highestPort-lowestPort)))
		if err := tryAddr(ctx, addr); !errors.Is(err, syscall.EADDRINUSE) {
			return addr, err
		}
	}
}

func tryAddr(ctx context.Context, addr string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("reserve address for kafka: %w", err)
	}
	return listener.Close()
}
