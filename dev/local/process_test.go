package local_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/local/postgres"
	"example.com/twinbox/test/testkit"
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
		Dir: dir, Err: os.Stderr, Ready: func(at local.Addresses) {
			customer, notification := at.Services["customer"], at.Services["notification"]
			fmt.Println(customer.API, customer.Admin, notification.Admin, at.KafkaBrokers, at.SMTP, at.Mailbox)
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

type child struct {
	cmd *exec.Cmd
	api string
	all []string // API, both admin listeners, broker, SMTP, mailbox page
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
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, cmd.Wait(), "the child said why")
	}
	all := strings.Fields(line)
	require.Len(t, all, 6)
	require.True(t, hasPostgres(dir))
	return child{cmd: cmd, api: all[0], all: all}
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
	require.Contains(t, string(out), fmt.Sprintf("already runs on %s (process %d)", dir, stack.cmd.Process.Pid))
	require.True(t, hasPostgres(dir), "the first is not disturbed")

	require.NoError(t, stack.cmd.Process.Signal(os.Interrupt))
	require.NoError(t, stack.cmd.Wait(), "a clean stop ends with 0")
	require.False(t, hasPostgres(dir), "PostgreSQL ended before the stack did")
	require.NoFileExists(t, filepath.Join(dir, "postgres", "postmaster.pid"))
}

func TestKillLeavesNothingAndLosesNothing(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc"); err != nil {
		return // only Linux ends a child with its parent
	}
	dir := folder(t)
	stack := startChild(t, dir)
	require.Equal(t, 201, signUp(t, at(stack.api), "ada@example.org"))
	require.NoError(t, stack.cmd.Process.Kill())
	require.Error(t, stack.cmd.Wait())
	testkit.Until(t, func() bool { return !hasPostgres(dir) })

	again := startChild(t, dir)
	require.Equal(t, 409, signUp(t, at(again.api), "ADA@example.org"), "she is still there")
	require.NoError(t, again.cmd.Process.Signal(os.Interrupt))
	require.NoError(t, again.cmd.Wait())
}

func TestStackWithSettingsEndsWithItsDatabase(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	ready, ended := make(chan local.Addresses, 1), make(chan error, 1)
	go func() {
		ended <- local.Run(t.Context(), local.Config{
			Dir: dir, Settings: []string{"RATE_LIMIT=1", "MAIL_LEASE=90s"}, Ready: func(at local.Addresses) { ready <- at },
		})
	}()
	at := <-ready
	require.Equal(t, http.StatusCreated, signUp(t, at, "one@example.org"))
	require.Equal(t, http.StatusTooManyRequests, signUp(t, at, "two@example.org"), "settings reach the services")

	content, err := os.ReadFile(filepath.Join(dir, "postgres", "postmaster.pid"))
	require.NoError(t, err)
	postmaster, err := strconv.Atoi(strings.Fields(string(content))[0])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(postmaster, syscall.SIGQUIT))
	require.ErrorContains(t, <-ended, "postgresql: ended by itself")

	require.NoError(t, start(t, local.Config{Dir: dir}).stop(), "the next start recovers")
}

func at(api string) local.Addresses {
	return local.Addresses{Services: map[string]local.Listen{"customer": {API: api}}}
}
