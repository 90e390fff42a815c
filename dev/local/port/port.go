// Package port picks ports for programs that open them later.
package port

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// A request for any port gets one from 32768 on under Linux, from 49152 on under macOS.
const (
	lowest  = 20_000
	highest = 32_000
)

// Pick replaces port 0 of host:port by a free port, and refuses a taken one. Until its owner opens it, only a process
// that names the port can take it.
func Pick(ctx context.Context, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("pick a port: %w", err)
	}
	for {
		picked := addr
		if port == "0" {
			picked = net.JoinHostPort(host, strconv.Itoa(lowest+rand.IntN(highest-lowest)))
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", picked)
		switch {
		case err == nil:
			return picked, listener.Close()
		case port != "0" || !errors.Is(err, syscall.EADDRINUSE):
			return "", fmt.Errorf("pick a port: %w", err)
		}
	}
}
