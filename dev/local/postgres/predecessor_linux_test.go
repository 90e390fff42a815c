package postgres_test

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/postgres"
	"example.com/twinbox/test/testkit"
)

// After a reboot another process may have the server's id.
func TestAProcessThatGotTheServersIDIsNotTheServer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(testkit.Folder(t), "data")
	require.NoError(t, startServer(t, postgres.Config{Dir: dir}).Kill())
	other := osexec.Command("sleep", "600")
	require.NoError(t, other.Start())
	t.Cleanup(func() { _, _ = other.Process.Kill(), other.Wait() })
	file := filepath.Join(dir, "postmaster.pid")
	left, err := os.ReadFile(file)
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(left), "\n")
	require.NoError(t, os.WriteFile(file, []byte(strconv.Itoa(other.Process.Pid)+"\n"+rest), 0o600))
	server := startServer(t, postgres.Config{Dir: dir})
	require.Equal(t, 1, query[int](t, server, `select 1`))
}
