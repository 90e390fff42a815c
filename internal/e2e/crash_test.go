//go:build faults

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/fault"
)

// The steps of the flow, each with the crash points at which its service dies right after it. See the table in the
// README: "if it dies here".
var steps = []struct{ step, service, point string }{
	{"1 decoded", customerService, "customer.signup.decoded"},
	{"2 committed", customerService, "customer.signup.committed"},
	{"3 answered", customerService, "customer.signup.answered"},
	{"4 published, cursor not advanced", customerService, "relay.publish.after"},
	{"4 cursor advanced", customerService, "relay.finish.after"},
	{"5 profile written, not committed", customerService, "inbox.customer.profile.handled"},
	{"5 profile committed, offset not", customerService, "inbox.customer.profile.committed"},
	{"6 mail listed, not committed", notificationService, "inbox.notification.users.handled"},
	{"6 mail listed and committed, offset not", notificationService, "inbox.notification.users.committed"},
	{"7 mail claimed, not submitted", notificationService, "notification.mail.claimed"},
	{"7 mail sent and recorded", notificationService, "notification.mail.recorded"},
	{"7 sent said, cursor not advanced", notificationService, "relay.publish.after"},
	{"8 mail noted, offset not committed", customerService, "inbox.customer.mail.committed"},
	{"9 verified and committed, not answered", customerService, "customer.verify.committed"},
}

// The story comes to the same end with a service killed after any of its steps and started again.
func TestTheStoryWithAProcessThatDies(t *testing.T) {
	parallel(t)
	for _, row := range steps {
		t.Run(row.step, func(t *testing.T) {
			parallel(t)
			h := newHouse(t)
			h.start(t, map[string]string{
				customerService: notificationService, notificationService: customerService,
			}[row.service])
			armed := h.spawn(t, row.service, row.point)
			again := make(chan *process, 1)
			go func() {
				defer close(again) // also when the second start fails the test
				<-armed.ended
				again <- h.spawn(t, row.service, "")
			}()
			h.tell(t)
			select {
			case <-armed.ended:
			default:
				t.Fatalf("nothing died at %s: the story was told without it", row.point)
			}
			require.Equal(t, "signal: killed", armed.err.Error(), armed.stderr)
			survivor := <-again
			require.NotNil(t, survivor)
			require.NoError(t, survivor.stop(), "a clean stop: %s", survivor.stderr)
			h.requireTold(t)
		})
	}
}

// A sender that dies between the server's yes and its own record cannot know. The mail is parked for a person: never
// sent twice.
func TestAMailWhoseFateNobodyKnowsIsParked(t *testing.T) {
	parallel(t)
	h := newHouse(t)
	h.start(t, customerService)
	armed := h.spawn(t, notificationService, "notification.mail.accepted")
	h.client().signUp(t)
	<-armed.ended
	require.Len(t, h.box.Messages(), 1)
	survivor := h.spawn(t, notificationService, "")
	require.Eventually(t, func() bool {
		return count(t, h.notificationDB, `select count(*) from lease where state = 'uncertain'`) == 1
	}, patience, pollEvery)
	require.NoError(t, survivor.stop(), survivor.stderr)
	require.Len(t, h.box.Messages(), 1)
}

// process is a service in a process of its own: this test binary, called again.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	err    error // how it ended; read after ended
	stderr *lockedBuffer
}

const childVariable = "TWINBOX_E2E_CHILD"

// assignment is what a child is told to be.
type assignment struct {
	Service string
	Environ []string
	CrashAt string
}

func (h *house) spawn(t *testing.T, name, crashAt string) *process {
	t.Helper()
	told, err := json.Marshal(assignment{name, h.environ(name), crashAt})
	require.NoError(t, err)
	p := &process{cmd: exec.Command(os.Args[0], "-test.run=^$"), ended: make(chan struct{}), stderr: &lockedBuffer{}}
	p.cmd.Env = append(os.Environ(), childVariable+"="+string(told))
	p.cmd.Stderr = p.stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	ready := make(chan struct{})
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if lines.Text() == "ready" {
				close(ready)
			}
		}
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("stderr of the child:\n%s", p.stderr)
		}
	})
	select {
	case <-ready:
	case <-p.ended:
		require.NotEmpty(t, crashAt, "the child did not start: %s", p.stderr)
	}
	return p
}

// stop asks the process to end and reports how it did.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-p.ended
	return p.err
}

// child is the process's own side of it. It does not return to the test binary's tests.
func child(told string) int {
	var a assignment
	if err := json.Unmarshal([]byte(told), &a); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if a.CrashAt != "" {
		fault.Arm(a.CrashAt, func() {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // no deferred call, no flush, no goodbye
			select {}
		})
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, a.Service, a.Environ, func() { fmt.Println("ready") }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func init() {
	if told := os.Getenv(childVariable); told != "" {
		os.Exit(child(told))
	}
}
