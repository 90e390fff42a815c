package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

const module = "example.com/twinbox/"

var executed = []string{
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka/publisher.go: *Publisher.Publish",
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka/subscriber.go: *Subscriber.Subscribe",
	"github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql/publisher.go: *Publisher.Publish",
	"github.com/ThreeDotsLabs/watermill/components/cqrs/event_bus.go: EventBus.Publish",
	module + "internal/kafka/publisher.go: *Publisher.PublishAcked",
	module + "internal/kafka/claim.go: *claim.work",
	module + "internal/inbox/consume.go: *Inbox.BatchMiddleware",
}

// A signup ends when the consumers have handled the events of it and of its mail. A walk is one event from its
// committed row to Kafka's acknowledgement. A function counts if each of two signups runs it, because background work
// rarely runs during both.
const (
	maxSignupFunctions = 260
	maxSignupFiles     = 71
	maxWalkFunctions   = 58
	maxBatchFunctions  = 56
)

var (
	walk = regexp.MustCompile(`^` + module +
		`internal/(outbox/(relay|window)/|kafka/(publisher\.go|errors\.go|marshaler\.go: Marshaler\.Marshal$))`)
	batch = regexp.MustCompile(`^` + module + `internal/(inbox/[a-z]+\.go|kafka/claim\.go)`)
)

// The first signup ends the work that runs once after a start.
func TestOneSignupRunsWatermill(t *testing.T) {
	kafkatest.InProcess(t)
	h := newStack(t) // alone: on a busy machine the services do more than the usual
	program := buildForCoverage(t)
	customer, notification := h.startCounted(t, program, customerService), h.startCounted(t, program, notificationService)
	for n, address := range []string{"ada@example.org", "eve@example.org", "bob@example.org"} {
		h.client().insist(t, http.StatusCreated, http.MethodPost, "/v1/signups",
			fmt.Sprintf(`{"email":%q,"name":"Someone"}`, address), nil)
		testkit.Until(t, func() bool {
			return count(t, h.customerDB, `select count(*) from verification_mail`) == n+1
		}, "the mail was never announced")
		h.awaitRecorded(t)
		customer.writeCounters(t)
		notification.writeCounters(t)
	}
	customer.stop(t)
	notification.stop(t)

	run := functionsRun(t, slices.Concat(customer.written, notification.written)...)
	for _, function := range executed {
		require.Contains(t, run, function)
	}
	signup := runByBoth(t, customer, notification)
	maps.DeleteFunc(signup, func(function, _ string) bool {
		return !strings.HasPrefix(function, module) || strings.HasPrefix(function, module+"test/")
	})
	walked := runByBoth(t, customer)
	handled := maps.Clone(walked)
	maps.DeleteFunc(walked, func(function, _ string) bool { return !walk.MatchString(function) })
	maps.DeleteFunc(handled, func(function, _ string) bool { return !batch.MatchString(function) })
	files := slices.Compact(slices.Sorted(maps.Values(signup)))
	t.Logf("one signup runs %d functions of %d files:\n%s", len(signup), len(files), list(signup))
	t.Logf("from the committed row to the acknowledgement an event walks through %d functions:\n%s",
		len(walked), list(walked))
	t.Logf("a batch of the inbox runs %d functions:\n%s", len(handled), list(handled))
	require.LessOrEqual(t, len(signup), maxSignupFunctions)
	require.LessOrEqual(t, len(files), maxSignupFiles)
	require.LessOrEqual(t, len(walked), maxWalkFunctions)
	require.LessOrEqual(t, len(handled), maxBatchFunctions)
}

func buildForCoverage(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "counted")
	build := exec.CommandContext(t.Context(), "go", "build", "-covermode=atomic",
		"-coverpkg="+module+"...,github.com/ThreeDotsLabs/...", "-o", program, "./testdata/counted")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as most builds, so the other modules' packages are compiled
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

type counted struct {
	*exec.Cmd
	folder  string
	written []string // the folders with counters, each since the one before
}

func (h *stack) startCounted(t *testing.T, program, name string) *counted {
	t.Helper()
	c := &counted{
		Cmd:    exec.CommandContext(context.WithoutCancel(t.Context()), program, name),
		folder: t.TempDir(),
	}
	c.Env = append(h.environ(name), "GOCOVERDIR="+c.folder)
	c.Stderr = os.Stderr
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c
}

func (c *counted) writeCounters(t *testing.T) {
	t.Helper()
	written := filepath.Join(c.folder, strconv.Itoa(len(c.written)+1))
	require.NoError(t, c.Process.Signal(syscall.SIGUSR1))
	testkit.Until(t, func() bool {
		_, err := os.Stat(written)
		return err == nil
	}, "no counters in %s", written)
	c.written = append(c.written, written)
}

func (c *counted) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.NoError(t, c.Wait())
}

// runByBoth returns what the second and the third signup run.
func runByBoth(t *testing.T, services ...*counted) map[string]string {
	t.Helper()
	var second, third []string
	for _, c := range services {
		second, third = append(second, c.written[1]), append(third, c.written[2])
	}
	run, other := functionsRun(t, second...), functionsRun(t, third...)
	maps.DeleteFunc(run, func(function, _ string) bool { return other[function] == "" })
	return run
}

func functionsRun(t *testing.T, folders ...string) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "tool", "covdata", "func",
		"-i="+strings.Join(folders, ",")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	line := regexp.MustCompile(`(?m)^(\S+\.go):\d+:\s+(\S+)\s+([0-9.]+)%$`)
	run := map[string]string{}
	for _, m := range line.FindAllStringSubmatch(string(out), -1) {
		if m[3] != "0.0" {
			run[m[1]+": "+m[2]] = m[1]
		}
	}
	return run
}

func list(functions map[string]string) string {
	return strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(functions)), "\n"), module, "")
}
