package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/local/postgres"
)

// childVariable makes this test binary a program that runs a stack. filesVariable limits its descriptors.
const (
	childVariable = "TWINBOX_TEST_STACK"
	filesVariable = "TWINBOX_TEST_FILES"
)

func runChild(dir string) int {
	if n, err := strconv.ParseUint(os.Getenv(filesVariable), 10, 64); err == nil {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := local.Run(ctx, local.Config{
		Dir: dir, Extra: shop, Err: os.Stderr, Ready: func(at local.Addresses) {
			found := addresses{API: at.API(), Others: []string{at.KafkaBrokers, at.SMTP, at.Mailbox}}
			for _, name := range at.Names {
				found.Admins = append(found.Admins, at.Services[name].Admin)
			}
			_ = json.NewEncoder(os.Stdout).Encode(found)
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

type addresses struct {
	API    string
	Admins []string
	Others []string // broker, SMTP, mailbox page
}

type child struct {
	addresses

	cmd *exec.Cmd
}

func startChild(t *testing.T, dir string, environ ...string) child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childVariable+"="+dir), environ...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // a failed test must not leave a stack behind
		_ = cmd.Wait()
	})
	started := child{cmd: cmd}
	if err := json.NewDecoder(out).Decode(&started.addresses); err != nil {
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, cmd.Wait(), "the child said why")
	}
	require.True(t, hasPostgres(dir))
	return started
}

func hasPostgres(dir string) bool { return postgres.IsRunning(filepath.Join(dir, "postgres")) }

func TestSecondProcessIsRefusedAndInterruptLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	stack := startChild(t, dir)
	second := exec.Command(os.Args[0])
	second.Env = append(os.Environ(), childVariable+"="+dir)
	out, err := second.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, second.ProcessState.ExitCode())
	require.Contains(t, string(out), fmt.Sprintf("process %d runs on %s", stack.cmd.Process.Pid, dir))
	require.True(t, hasPostgres(dir), "the first is not disturbed")

	require.NoError(t, stack.cmd.Process.Signal(os.Interrupt))
	require.NoError(t, stack.cmd.Wait(), "a clean stop ends with 0")
	require.False(t, hasPostgres(dir), "PostgreSQL ended before the stack did")
	require.NoFileExists(t, filepath.Join(dir, "postgres", "postmaster.pid"))
}
