//go:build faults

package notification

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/testkit"
)

type role struct {
	DSN, SMTP, Policy, At string
	Freeze                bool
	Lease, Timeout        time.Duration
}

func init() { crashtest.Child(play) }

const childName = "child"

func play(r role) error {
	once := crashtest.Die
	if r.Freeze {
		once = crashtest.Freeze
	}
	fault.ArmNth(r.At, 1, once)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	cfg, err := pgxpool.ParseConfig(r.DSN)
	if err != nil {
		return err
	}
	cfg.ConnConfig.RuntimeParams["application_name"] = childName
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	out, err := newOutbox()
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	setup := newSetup(pool, out, r.SMTP)
	setup.log = slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	setup.registerer, setup.settings.OnUncertain = registry, r.Policy
	setup.settings.Lease, setup.smtp.Config.Timeout = r.Lease, r.Timeout
	sender, err := newSender(setup)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := sender.Run(ctx); err != nil {
		return err
	}
	families, err := registry.Gather()
	for _, family := range families {
		if family.GetName() == "lease_stale_rejects_total" && family.GetMetric()[0].GetCounter().GetValue() > 0 {
			fmt.Println("fenced")
		}
	}
	return err
}

type ending struct {
	state         lease.State
	doubts, taken int
}

func (b *bundle) requireEnding(t *testing.T, want ending, server *testkit.SMTPServer) {
	t.Helper()
	b.awaitState(t, string(want.state))
	require.Equal(t, want.doubts, b.count(t, `select doubts from lease`))
	// A sender may be dead before the server has read its bytes.
	testkit.Until(t, func() bool { return len(server.Mails()) >= want.taken })
	mails := server.Mails()
	require.Len(t, mails, want.taken)
	for _, mail := range mails {
		require.Equal(t, mails[0], mail)
	}
	told := 0
	if want.state == lease.Done {
		told = 1
	}
	require.Equal(t, told, b.count(t, `select count(*) from outbox`), "one event, when the outcome is known")
}

type step struct {
	at           string
	park, resend ending
}

func (s step) underBoth(t *testing.T, play func(t *testing.T, policy string, want ending)) {
	t.Helper()
	for policy, want := range map[string]ending{lease.Park: s.park, lease.Resend: s.resend} {
		t.Run(s.at+", "+policy, func(t *testing.T) {
			t.Parallel()
			play(t, policy, want)
		})
	}
}

// Killed before it records that the content begins, a sender leaves no doubt.
func TestASenderThatIsKilled(t *testing.T) {
	t.Parallel()
	for _, s := range []step{
		{"notification.mail.claimed", ending{lease.Done, 0, 1}, ending{lease.Done, 0, 1}},
		{"smtp.content", ending{lease.Done, 0, 1}, ending{lease.Done, 0, 1}},
		{"smtp.submitting", ending{lease.Uncertain, 1, 0}, ending{lease.Done, 1, 1}},
		{"smtp.accepted", ending{lease.Uncertain, 1, 1}, ending{lease.Done, 1, 2}},
		{"notification.mail.recording", ending{lease.Uncertain, 1, 1}, ending{lease.Done, 1, 2}},
		{"notification.mail.recorded", ending{lease.Done, 0, 1}, ending{lease.Done, 0, 1}},
	} {
		s.underBoth(t, func(t *testing.T, policy string, want ending) {
			b, server := facing(t, testkit.SMTPAnswers(nil), func(setup *Sender) { setup.settings.OnUncertain = policy })
			b.register(t)
			armed := crashtest.Start(t, role{
				DSN: b.pool.Config().ConnString(), SMTP: server.Addr(), Policy: policy, At: s.at,
				Lease: time.Minute, Timeout: 25 * time.Second,
			})
			require.EqualError(t, armed.Wait(t), crashtest.Killed)
			// A backend may outlive its client by a statement, and claim the mail again.
			testkit.Until(t, func() bool {
				return b.count(t, `select count(*) from pg_stat_activity
						where datname = current_database() and application_name = $1`, childName) == 0
			})
			_, err := b.pool.Exec(t.Context(), `update lease set due_at = due_at - interval '1 min' where state <> 'done'`)
			require.NoError(t, err)
			b.start(t)
			b.requireEnding(t, want, server)
		})
	}
}

func TestASenderThatIsFrozen(t *testing.T) {
	t.Parallel()
	for _, s := range []step{
		{"notification.mail.claimed", ending{lease.Done, 0, 1}, ending{lease.Done, 0, 1}},
		{"smtp.content", ending{lease.Done, 0, 1}, ending{lease.Done, 0, 1}},
		{"smtp.submitting", ending{lease.Uncertain, 1, 0}, ending{lease.Done, 1, 1}},
		{"smtp.accepted", ending{lease.Uncertain, 1, 1}, ending{lease.Done, 1, 2}},
	} {
		s.underBoth(t, func(t *testing.T, policy string, want ending) {
			b, server := facing(t, testkit.SMTPAnswers(nil), func(setup *Sender) { setup.settings.OnUncertain = policy })
			b.register(t)
			frozen := crashtest.Start(t, role{
				DSN: b.pool.Config().ConnString(), SMTP: server.Addr(), Policy: policy, At: s.at,
				Freeze: true, Lease: 3 * time.Second, Timeout: 2 * time.Second,
			})
			frozen.Await(t, 1, crashtest.Frozen)
			b.start(t)
			b.requireEnding(t, want, server)
			before := b.count(t, `select hashtext(lease::text) from lease`)
			frozen.Thaw(t)
			frozen.Await(t, 1, `level=ERROR msg="effect not done"`)
			frozen.CloseInput()
			require.NoError(t, frozen.Wait(t))
			require.Equal(t, 1, frozen.Count("fenced"), "its last word was refused")
			require.Equal(t, before, b.count(t, `select hashtext(lease::text) from lease`))
			b.requireEnding(t, want, server)
		})
	}
}
