// Package port picks ports for programs that open them later.
package port

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// A request for any port gets one from 32768 on under Linux, from 49152 on under macOS.
const (
	lowest  = 20_000
	highest = 32_000
)

var given sync.Map

// Pick replaces port 0 of each host:port by a free port, and refuses a taken one. An empty address stays empty. Until
// its owner opens it, only a process that names the port, or picks it as well, can take it.
func Pick(ctx context.Context, addrs ...string) ([]string, error) {
	picked := make([]string, len(addrs))
	for i, addr := range addrs {
		if addr == "" {
			continue
		}
		listener, err := listen(ctx, addr)
		if err != nil {
			return nil, fmt.Errorf("pick a port: %w", err)
		}
		defer listener.Close() // after the last pick: no port is picked twice
		host, _, _ := net.SplitHostPort(addr)
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		picked[i] = net.JoinHostPort(host, port)
	}
	return picked, nil
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	for {
		picked := addr
		if port == "0" {
			picked = net.JoinHostPort(host, strconv.Itoa(lowest+rand.IntN(highest-lowest)))
			if _, isGiven := given.LoadOrStore(picked, true); isGiven {
				continue
			}
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", picked)
		if err == nil || port != "0" || !errors.Is(err, syscall.EADDRINUSE) {
			return listener, err
		}
	}
}
