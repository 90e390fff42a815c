package e2e

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// executed are functions that one signup and its mail have to run, as file and name.
var executed = []string{
	"watermill-kafka/v3/pkg/kafka/publisher.go: Publisher.Publish",
	"watermill-kafka/v3/pkg/kafka/subscriber.go: Subscriber.Subscribe",
	"watermill-sql/v3/pkg/sql/publisher.go: Publisher.Publish",
	"watermill/components/cqrs/event_bus.go: EventBus.Publish",
	"internal/kafka/publisher.go: Publisher.PublishContext",
	"internal/kafka/claim.go: claim.work",
	"internal/inbox/deliver.go: Inbox.BatchMiddleware",
}

// What the services execute is what their documentation says: it is read from the counters of programs that are built
// for coverage, and not from what they link.
func TestOneSignupRunsWatermill(t *testing.T) {
	parallel(t)
	h := newStack(t)
	bin, counters := t.TempDir(), t.TempDir()
	for _, name := range []string{customerService, notificationService} {
		program := "example.com/twinbox/cmd/" + name
		build := exec.CommandContext(t.Context(), "go", "build", "-cover", // of the main package too: it writes the counters
			"-coverpkg="+strings.Join([]string{
				program, "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka",
				"github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql", "github.com/ThreeDotsLabs/watermill/components/cqrs",
				"example.com/twinbox/internal/kafka", "example.com/twinbox/internal/inbox",
			}, ","), "-o", bin, program)
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
		serve := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(bin, name))
		serve.Env = append(h.environ(name), "GOCOVERDIR="+counters)
		serve.Stderr = os.Stderr
		require.NoError(t, serve.Start())
		t.Cleanup(func() { _ = serve.Process.Kill() })
		defer func() {
			require.NoError(t, serve.Process.Signal(syscall.SIGTERM))
			require.NoError(t, serve.Wait())
		}()
	}
	api := valueOf(h.customerEnv, "HTTP_ADDR")
	testkit.Until(t, func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", api)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	h.client().signUp(t)
	h.awaitMail(t)
	t.Cleanup(func() { requireExecuted(t, counters) })
}

func valueOf(environ []string, variable string) (value string) {
	for _, entry := range environ {
		if text, is := strings.CutPrefix(entry, variable+"="); is {
			value = text
		}
	}
	return value
}

// requireExecuted reads the counters when the programs have ended.
func requireExecuted(t *testing.T, counters string) {
	t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "tool", "covdata", "func",
		"-i="+counters).CombinedOutput()
	require.NoError(t, err, "%s", out)
	line := regexp.MustCompile(`(?m)^(\S+\.go):\d+:\s+(\S+)\s+([0-9.]+)%$`)
	ran := map[string]bool{}
	for _, m := range line.FindAllStringSubmatch(string(out), -1) {
		for _, want := range executed {
			file, name, _ := strings.Cut(want, ": ")
			if strings.HasSuffix(m[1], file) && strings.TrimPrefix(m[2], "*") == name && m[3] != "0.0" {
				ran[want] = true
			}
		}
	}
	for _, want := range executed {
		require.True(t, ran[want], "not executed: %s\n%s", want, out)
	}
}
