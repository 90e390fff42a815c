//go:build faults

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/crashtest"
)

// Each step has the crash points right after it. See the table "if it dies here" in the README.
var steps = []struct {
	step, service, point string
	nth                  int
	begin                func(*testing.T)
}{
	{"1 decoded", customerService, "customer.signup.decoded", 1, inProcess},
	{"2 committed", customerService, "customer.signup.committed", 1, inProcess},
	{"3 answered", customerService, "customer.signup.answered", 1, inProcess},
	{"4 published, cursor not advanced", customerService, "relay.publish.after", 1, parallel},
	{"4 cursor advanced", customerService, "relay.store.after", 2, parallel},
	{"5 profile written, not committed", customerService, "inbox.customer.profile.handled", 1, parallel},
	{"5 profile committed, offset not", customerService, "inbox.customer.profile.committed", 1, parallel},
	{"6 mail listed, not committed", notificationService, "inbox.notification.users.handled", 1, parallel},
	{"6 mail listed and committed, offset not", notificationService, "inbox.notification.users.committed", 1, parallel},
	{"7 mail claimed, not submitted", notificationService, "notification.mail.claimed", 1, inProcess},
	{"7 mail sent and recorded", notificationService, "notification.mail.recorded", 1, inProcess},
	{"7 sent said, cursor not advanced", notificationService, "relay.publish.after", 1, parallel},
	{"8 mail noted, offset not committed", customerService, "inbox.customer.mail.committed", 1, parallel},
	{"9 verified and committed, not answered", customerService, "customer.verify.committed", 1, inProcess},
}

func TestTheStoryWithAProcessThatDies(t *testing.T) {
	parallel(t)
	for _, row := range steps {
		t.Run(row.step, func(t *testing.T) {
			row.begin(t)
			h := newStack(t)
			h.start(t, map[string]string{
				customerService: notificationService, notificationService: customerService,
			}[row.service])
			armed := h.spawnFor(t, row.service, row.point, row.nth)
			again := make(chan func(), 1)
			go func() {
				defer close(again) // also when the second start fails the test
				_ = armed.Wait(t)
				if row.service == notificationService {
					h.endMailLeases(t) // those of a sender that lives would become uncertain
				}
				again <- h.start(t, row.service)
			}()
			h.tell(t)
			require.EqualError(t, armed.Wait(t), crashtest.Killed)
			stop := <-again
			require.NotNil(t, stop)
			stop()
			h.requireTold(t)
		})
	}
}

type role struct {
	Service string
	Environ []string
	CrashAt string
	Nth     int
}

// serving is what it prints once it listens.
const serving = "serving"

func init() { crashtest.Child(play) }

func play(r role) error {
	fault.ArmNth(r.CrashAt, r.Nth, crashtest.Die)
	return serve(context.Background(), r.Service, r.Environ, service.Host{
		Log: quiet().With("service", r.Service), Ready: func(service.Listeners) { fmt.Println(serving) },
	})
}

// spawn starts a service that dies. Its mail sender does not poll: a poll during a submit would make the mail
// uncertain.
func (h *stack) spawn(t *testing.T, name, crashAt string) *crashtest.Process {
	t.Helper()
	return h.spawnFor(t, name, crashAt, 1)
}

func (h *stack) spawnFor(t *testing.T, name, crashAt string, nth int) *crashtest.Process {
	t.Helper()
	environ := append(slices.Clone(h.environ(name)), "MAIL_POLL=1m")
	return crashtest.Start(t, role{name, environ, crashAt, nth})
}
