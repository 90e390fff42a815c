package testkit

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Script writes a program for sh. No program runs while a forked child has its file open for writing, and other tests
// fork.
func Script(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755))
}
