package binaries

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The error names the command for this machine's package manager.
func TestNotFoundNamesTheInstaller(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	require.Equal(t, ErrNotFound, notFound(), "no package manager")
	for _, manager := range []string{"brew", "dnf"} { // the last one is the first that is asked
		require.NoError(t, os.WriteFile(filepath.Join(bin, manager), []byte("#!/bin/sh\n"), 0o755))
		require.ErrorIs(t, notFound(), ErrNotFound)
		require.ErrorContains(t, notFound(), manager+" install")
	}
	_, err := Ensure(t.Context(), options(t, brokenClient("one")))
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "dnf install -y postgresql-server")
}

func TestHasMusl(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.False(t, hasMusl(root))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "lib"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "lib", "ld-musl-x86_64.so.1"), nil, 0o755))
	require.True(t, hasMusl(root))
}
