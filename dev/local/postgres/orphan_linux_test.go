package postgres_test

import (
	"bufio"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/postgres"
	"example.com/twinbox/test/testkit"
)

func startParent(t *testing.T, dir string) *osexec.Cmd {
	t.Helper()
	parent := osexec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"="+dir)
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return parent
}

// The last start may find a server without a signal yet.
func TestServerEndsWithAKilledParent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(testkit.Folder(t), "data")
	for range 3 {
		parent := startParent(t, dir)
		require.True(t, postgres.IsRunning(dir))
		require.NoError(t, parent.Process.Kill())
		require.Error(t, parent.Wait())
		testkit.Until(t, func() bool { return !postgres.IsRunning(dir) })
	}
	parent := startParent(t, dir)
	socket := socketDir(t, dir)
	require.NoError(t, parent.Process.Kill())
	server := startServer(t, postgres.Config{Dir: dir})
	require.Equal(t, 1, query[int](t, server, `select 1`))
	require.Error(t, parent.Wait())
	require.NoDirExists(t, socket, "the folder that the killed program left")
}

func socketDir(t *testing.T, dir string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "postmaster.opts"))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(content), `"-k" "`)
	require.True(t, found)
	socket, _, _ := strings.Cut(after, `"`)
	return socket
}
