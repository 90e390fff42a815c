package notification

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/lease"
	"example.com/twinbox/test/testkit"
)

func facing(t *testing.T, script testkit.SMTPScript, change func(*Sender)) (*bundle, *testkit.SMTPServer) {
	t.Helper()
	b := setup(t)
	server := testkit.StartSMTP(t, script)
	b.sender = b.newSender(t, func(s *Sender) {
		s.smtp.Config.Addr = server.Addr()
		if change != nil {
			change(s)
		}
	})
	return b, server
}

func TestEveryFaultAtEveryStage(t *testing.T) {
	t.Parallel()
	type fate struct {
		state    lease.State
		attempts int
		taken    int
	}
	refused := fate{lease.Failed, 1, 0}     // permanently
	givenUp := fate{lease.Failed, 3, 0}     // for now, three times
	unreached := fate{lease.Pending, 0, 0}  // waits, and does not count as an attempt
	unknown := fate{lease.Uncertain, 1, 0}  // not taken, and the sender cannot know
	twofold := fate{lease.Uncertain, 1, 1}  // taken, and the sender cannot know
	answers := map[string]map[string]fate{} // stage, answer
	conversation := []testkit.SMTPStage{testkit.AtFrom, testkit.AtTo, testkit.AtData, testkit.AtDot}
	for _, at := range conversation {
		answers[string(at)] = map[string]fate{
			"421 later": givenUp, "451 4.7.1 greylisted": givenUp, "552 5.2.2 mailbox full": givenUp, "cut": givenUp,
			"550 5.1.1 no ada@example.org": refused, "550 no": refused, "554 5.7.1 spam": refused,
		}
	}
	for _, at := range conversation {
		for _, answer := range []string{
			"421 4.3.2 closing", "452 4.3.1 no room", "535 5.7.8 who are you", "554 5.3.2 read only",
			"550 5.1.8 sender's domain",
		} {
			answers[string(at)][answer] = unreached
		}
	}
	for answer := range answers[string(testkit.AtFrom)] {
		answers[string(testkit.AtFrom)][answer] = unreached
	}
	answers[string(testkit.AtDot)]["cut"] = unknown
	answers[string(testkit.AtDot)]["354 what"] = unknown
	answers["content"] = map[string]fate{"cut": unknown}
	answers["taken"] = map[string]fate{"cut": twofold, "251 2.0.0 will forward": twofold} // RFC 5321 has 250 alone
	answers["connect"] = map[string]fate{
		"cut": unreached, "421 4.3.2 closing": unreached, "554 5.3.2 no service": unreached,
	}
	for at, rows := range answers {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			var say atomic.Value
			var asked atomic.Int32
			b, server := facing(t, func(stage testkit.SMTPStage) testkit.SMTPAnswer {
				if string(stage) != at {
					return testkit.SMTPAnswer{}
				}
				asked.Add(1)
				if say.Load() == "cut" {
					return testkit.SMTPAnswer{Cut: true}
				}
				return testkit.SMTPAnswer{Say: say.Load().(string)}
			}, nil)
			for answer, want := range rows {
				say.Store(answer)
				asked.Store(0)
				taken := len(server.Mails())
				t.Run(answer, func(t *testing.T) {
					b.again(t, server)
					b.register(t)
					t.Run("send", func(t *testing.T) {
						b.start(t)
						testkit.Until(t, func() bool {
							return b.count(t, `select count(*) from lease where state = $1 and (error is not null or state = 'done')
								and due_at is not null`, want.state) == 1 && asked.Load() > 0
						}, "never %s", want.state)
					})
					require.Equal(t, want.attempts, b.count(t, `select attempts from lease`))
					require.Len(t, server.Mails()[taken:], want.taken)
					require.Zero(t, b.count(t, `select count(*) from outbox`), "announced when it is known to be sent")
					require.Zero(t, b.count(t, `select count(*) from lease where error like '%ada@%'`), "no address is stored")
				})
			}
		})
	}
}

func (b *bundle) again(t *testing.T, server *testkit.SMTPServer) {
	t.Helper()
	for _, table := range []string{"lease", "mail", "contact", "outbox", "inbox_key"} {
		_, err := b.pool.Exec(t.Context(), "delete from "+table)
		require.NoError(t, err)
	}
	b.sender = b.newSender(t, func(s *Sender) { s.smtp.Config.Addr = server.Addr() })
}

func TestAStallAfterTheContentLeavesDoubt(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	b, server := facing(t, func(at testkit.SMTPStage) testkit.SMTPAnswer {
		if at == testkit.AtTaken {
			return testkit.SMTPAnswer{Wait: release}
		}
		return testkit.SMTPAnswer{}
	}, func(s *Sender) { s.smtp.Config.Timeout = 2 * time.Second })
	t.Cleanup(func() { close(release) })
	b.register(t)
	b.start(t)
	b.awaitState(t, "uncertain")
	testkit.Until(t, func() bool { return len(server.Mails()) == 1 })
}
