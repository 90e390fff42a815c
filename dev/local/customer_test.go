package local_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/local/stacktest"
	"example.com/twinbox/test/testkit"
)

func signUp(t *testing.T, at local.Addresses, email string) int {
	t.Helper()
	body := strings.NewReader(`{"email":"` + email + `","name":"Ada"}`)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at.API()+"/v1/signups", body)
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", `"`+email+`"`)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

func TestStack(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	first := start(t, local.Config{Dir: dir, Settings: append(stacktest.Patient(), "LOG_LEVEL=debug")})
	require.Equal(t, http.StatusCreated, signUp(t, first.at, "ada@example.org"))
	require.Equal(t, http.StatusCreated, signUp(t, first.at, "bob@example.org")) // its line is lowered to debug

	out := first.out.String()
	require.Contains(t, out, "curl -XPOST "+first.at.API()+`/v1/signups -H 'content-type: application/json' `+
		`-d '{"email":"ada@example.org","name":"Ada"}'`)
	require.Contains(t, out, "http://"+first.at.Mailbox)
	require.NotContains(t, out, "\x1b[", "no colours unless allowed")

	err := local.Run(t.Context(), local.Config{Dir: dir})
	require.ErrorContains(t, err, fmt.Sprintf("process %d runs on %s", os.Getpid(), dir))
	require.ErrorContains(t, err, "make run ARGS='--dir=")
	require.NoError(t, first.stop())
	require.NotContains(t, first.err.String(), "level=", "a good run has no warnings")
	require.Regexp(t, `Stopping the services.*\nStopped\. The data is in `+dir, first.err.String())
	secret := secretOf(t, dir)
	log, err := os.ReadFile(filepath.Join(dir, "customer.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), `"level":"DEBUG","msg":"event settled"`, "a setting of the log holds for the file")

	second := start(t, local.Config{Dir: dir, Settings: stacktest.Patient()})
	require.Equal(t, http.StatusConflict, signUp(t, second.at, "ADA@example.org"), "the data is still there")
	require.NoError(t, second.stop())
	require.NotContains(t, second.err.String(), "level=", "nor has a restart")
	require.Equal(t, secret, secretOf(t, dir), "links in mails stay good")
	for _, part := range []string{"stack", "customer", "notification", "broker", "postgres"} {
		log, err := os.ReadFile(filepath.Join(dir, part+".log"))
		require.NoError(t, err)
		require.NotContains(t, string(log), secret)
		require.NotContains(t, strings.ToLower(string(log)), "ada@example.org")
	}
}

func secretOf(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "verification-secret")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	secret := strings.TrimSpace(string(content))
	require.Len(t, secret, 52)
	return secret
}

func TestBusyPortsAreAllNamed(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	addr := taken.Addr().String()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	dir := folder(t)

	err = local.Run(t.Context(), local.Config{Dir: dir, Services: listens(addr, "", ""), Kafka: other.Addr().String()})
	require.ErrorContains(t, err, "Customer API: "+addr+" is in use")
	require.ErrorContains(t, err, "take a free port with --customer-addr=127.0.0.1:0 "+
		"(make run ARGS=--customer-addr=127.0.0.1:0) or TWINBOX_CUSTOMER_ADDR=127.0.0.1:0")
	require.ErrorContains(t, err, "--kafka-addr")
	require.NoDirExists(t, filepath.Join(dir, "postgres"), "nothing was started")
}

func TestOneAddressForTwo(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())
	err = local.Run(t.Context(), local.Config{Dir: folder(t), Services: listens("", addr, addr)})
	require.ErrorContains(t, err, "Notification admin: "+addr+" is in use; take a free port with "+
		"--notification-admin-addr")
}

func TestAddressesAndSettingsAreCheckedTogether(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	err := local.Run(t.Context(), local.Config{
		Dir: dir, Services: listens("a b:80", "", ""),
		Mailbox: "0.0.0.0:7002", SMTP: "mail\u202e:25", Kafka: "127.0.0.1:65536",
		Settings: []string{"OUTBOX_POL=1s", "OUTBOX_POLL=often", "MAIL_LEASE=1s", "PUBLIC_URL=http://elsewhere"},
	})
	var coded interface{ ExitCode() int }
	require.ErrorAs(t, err, &coded)
	require.Equal(t, 2, coded.ExitCode())
	for _, want := range []string{
		`--customer-addr "a b:80"`, `--mailbox-addr "0.0.0.0:7002": not a loopback`,
		`--smtp-addr "mail\u202e:25"`, "--kafka-addr", "OUTBOX_POL:", "OUTBOX_POLL:", "MAIL_LEASE:", "PUBLIC_URL:",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "HTTP_ADDR", "flags are called flags")
	require.NoDirExists(t, dir)
}

func listens(api, customer, notification string) map[string]local.Listen {
	return map[string]local.Listen{"customer": {API: api, Admin: customer}, "notification": {Admin: notification}}
}

func TestKillLeavesNothingAndLosesNothing(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc"); err != nil {
		return // only Linux ends a child with its parent
	}
	dir := folder(t)
	stack := startChild(t, dir)
	require.Equal(t, 201, signUp(t, at(stack.API), "ada@example.org"))
	require.NoError(t, stack.cmd.Process.Kill())
	require.Error(t, stack.cmd.Wait())
	testkit.Until(t, func() bool { return !hasPostgres(dir) })

	again := startChild(t, dir)
	require.Equal(t, 409, signUp(t, at(again.API), "ADA@example.org"), "she is still there")
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
