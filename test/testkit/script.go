package testkit

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Script writes a program for sh, safe while other tests start processes: a program cannot run while a forked child has
// its file open for writing.
func Script(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755))
}
