// Package testkit holds helpers for tests of any package, and imports no package of the product.
package testkit

import (
	"fmt"
	"os"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/port"
)

const WaitLimit = 2 * time.Minute

const (
	soonest = time.Millisecond
	latest  = 100 * time.Millisecond
)

// Until returns when the condition holds, and fails the test after [WaitLimit]; the message shows the last value behind
// a pointer. The condition runs in the caller's goroutine, so it may use require. It never runs after the test has
// ended, unlike that of require.Eventually.
func Until(t testing.TB, condition func() bool, msgAndArgs ...any) {
	t.Helper()
	for began := time.Now(); !condition(); {
		waited := time.Since(began)
		if waited >= WaitLimit {
			for i, arg := range msgAndArgs {
				_, hasText := arg.(fmt.Stringer)
				if to := reflect.ValueOf(arg); !hasText && to.Kind() == reflect.Pointer && !to.IsNil() {
					msgAndArgs[i] = to.Elem().Interface()
				}
			}
			require.FailNow(t, "what was waited for has not happened", msgAndArgs...)
		}
		<-time.After(min(max(waited/10, soonest), latest))
	}
}

// ReservePort returns an address on loopback that no request for a free port gets. Connections are refused until a
// server listens.
func ReservePort(t testing.TB) string {
	t.Helper()
	addrs, err := port.Pick(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	return addrs[0]
}

// Folder returns a folder that every account may pass through, removed with the test. Root's PostgreSQL cannot enter a
// test's own, whose path may be too long for a socket.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "twinbox-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// Script writes a program for sh. No program runs while a forked child has its file open for writing, and other tests
// fork.
func Script(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755))
}
