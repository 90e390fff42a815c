// Package servicetest runs a service's command line in a test, as its main would.
package servicetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/testkit"
)

// Run is the run function of a command under cmd/.
type Run func(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int

func (run Run) Command(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, environ, &out, &errs)
	return code, out.String(), errs.String()
}

type Serving struct {
	API, Admin string // as bound
	Stop       func() (code int)
}

// Serve starts the service and returns when it listens.
func (run Run) Serve(t *testing.T, environ []string) Serving {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	logs, stderr := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, nil, environ, io.Discard, stderr)
		_ = stderr.Close()
	}()
	s := Serving{Stop: func() int { cancel(); return <-ended }}
	lines := bufio.NewScanner(logs)
	for lines.Scan() {
		var line struct{ Msg, API, Admin string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line), lines.Text())
		if line.Msg == "listening" {
			s.API, s.Admin = line.API, line.Admin
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, logs) }()
	if s.Admin == "" {
		require.FailNow(t, "the service ended before it listened", "exit code %d", <-ended)
	}
	return s
}

func Status(t *testing.T, url string) int {
	t.Helper()
	status, _ := Get(t, url)
	return status
}

func Get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(content)
}

// Trap returns an address that reports every connection.
func Trap(t *testing.T) (addr string, connected <-chan struct{}) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	calls := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			calls <- struct{}{}
			_ = conn.Close()
		}
	}()
	return listener.Addr().String(), calls
}

// Life runs a service's commands in an operator's order, on an empty database and port 0, and calls while between start
// and stop. reads are topics of other services.
func (run Run) Life(
	t *testing.T, environ []string, migration, topic string, reads []string, while func(Serving),
) {
	t.Helper()
	makeTopics(t, environ, reads)
	code, _, stderr := run.Command(t, environ, "serve")
	require.Equal(t, 1, code, "a schema that does not fit is said at once")
	require.Contains(t, stderr, "schema")

	code, stdout, stderr := run.Command(t, environ, "migrate")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "applied "+migration)
	code, stdout, _ = run.Command(t, environ, "migrate")
	require.Zero(t, code)
	require.Equal(t, "0 migrations applied, the schema is up to date\n", stdout)

	for range 2 {
		code, stdout, stderr = run.Command(t, environ, "topics")
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, topic+": 6 partitions")
	}
	code, again, stderr := run.Command(t, environ, "setup")
	require.Zero(t, code, stderr)
	require.Equal(t, "0 migrations applied, the schema is up to date\n"+stdout, again, "migrate and topics")

	serving := run.Serve(t, environ)
	require.Equal(t, http.StatusOK, Status(t, "http://"+serving.Admin+"/livez"))
	require.Equal(t, http.StatusOK, Status(t, "http://"+serving.Admin+"/metrics"))
	while(serving)
	healthy := func() bool {
		code, _, _ := run.Command(t, append(environ, "ADMIN_ADDR="+serving.Admin), "healthcheck")
		return code == 0
	}
	testkit.Until(t, healthy)
	require.Zero(t, serving.Stop())
	require.False(t, healthy(), "the stopped process does not answer")
}

func makeTopics(t *testing.T, environ, names []string) {
	t.Helper()
	for _, variable := range environ {
		brokers, is := strings.CutPrefix(variable, "KAFKA_BROKERS=")
		for _, name := range names {
			if is {
				require.NoError(t, kafka.EnsureTopics(t.Context(), kafka.Config{Brokers: strings.Split(brokers, ",")},
					kafka.Topic{Name: name, Partitions: 6}))
			}
		}
	}
}

// Refuses checks that every command but healthcheck refuses a broken environment with exit code 2 and exactly these
// problems, without the secret.
func (run Run) Refuses(t *testing.T, environ, problems []string, secret string) {
	t.Helper()
	for _, command := range []string{"serve", "setup", "migrate", "topics", "config"} {
		code, stdout, stderr := run.Command(t, environ, command)
		require.Equal(t, 2, code, command)
		for _, problem := range problems {
			require.Contains(t, stderr, "\n  "+problem, command)
		}
		require.Equal(t, len(problems)+1, strings.Count(stderr, "\n"), stderr)
		require.Equal(t, command == "config", stdout != "", command)
		require.NotContains(t, stdout+stderr, secret)
	}
}
