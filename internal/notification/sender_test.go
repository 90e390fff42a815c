package notification

import (
	"bytes"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/local/mailbox"
)

func TestAMailIsSentOnceAndSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.register(t)
	b.start(t)
	b.sender.Wake()
	messages, err := b.box.Await(t.Context(), 1)
	require.NoError(t, err)
	b.awaitState(t, "sent")

	m := messages[0]
	require.Equal(t, []string{"ada@example.org"}, m.To)
	require.Equal(t, "no-reply@example.com", m.From)
	require.Contains(t, m.Text, "Hello Ada,")
	var id string
	require.NoError(t, b.pool.QueryRow(t.Context(), `select id from mail`).Scan(&id))
	require.Equal(t, id+"@example.com", m.MessageID, "the same for every attempt")

	require.Len(t, m.Links, 1)
	link, err := url.Parse(m.Links[0])
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:8080/v1/verifications", strings.Split(m.Links[0], "?")[0])
	claim, err := domain.ParseClaim(link.Query().Get("token"))
	require.NoError(t, err)
	require.NoError(t, testKey.Verify(claim, "ada@example.org", time.Now()))
	require.WithinDuration(t, time.Now().Add(time.Hour), claim.Expires, time.Minute)

	require.Equal(t, 1, b.count(t, `select count(*) from outbox where event_type = $1 and key = $2 and version = 1`,
		contract.VerificationEmailSent.Type, string(someone)))
}

// What the server says decides where the mail goes next.
func TestTheServersAnswerDecides(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		stage    string
		answer   error
		state    string
		attempts int
		mails    int
		reason   string
	}{
		"mailbox unknown":        {"rcpt", mailbox.Refuse(550, "no such mailbox ada@example.org"), "failed", 1, 0, "550"},
		"content refused":        {"data", mailbox.Refuse(554, "spam"), "failed", 1, 0, "554"},
		"busy, again and again":  {"rcpt", mailbox.Refuse(451, "later"), "failed", 3, 0, "given up after 3 attempts"},
		"shutting down":          {"mail", mailbox.Refuse(421, "bye"), "failed", 3, 0, "given up after 3 attempts"},
		"cut before the content": {"rcpt", mailbox.ErrCut, "failed", 3, 0, "given up after 3 attempts"},
		"cut after the content":  {"data", mailbox.ErrCut, "uncertain", 1, 0, "no answer"},
		"cut after it was kept":  {"kept", mailbox.ErrCut, "uncertain", 1, 1, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(stage, _, _ string) error {
				if stage == row.stage {
					return row.answer
				}
				return nil
			})
			b.register(t)
			b.start(t)
			b.awaitState(t, row.state)
			require.Equal(t, row.attempts, b.count(t, `select attempts from mail`))
			require.Len(t, b.box.Messages(), row.mails)
			require.Zero(t, b.count(t, `select count(*) from outbox`), "nothing is announced")
			var reason string
			require.NoError(t, b.pool.QueryRow(t.Context(), `select error from mail`).Scan(&reason))
			require.Contains(t, reason, row.reason)
			require.NotContains(t, reason, "ada@", "no address in what is stored and logged")
		})
	}
}

func TestATemporaryRefusalIsTriedAgain(t *testing.T) {
	t.Parallel()
	var refusals atomic.Int32
	b := setup(t, func(stage, _, _ string) error {
		if stage == "rcpt" && refusals.Add(1) <= 2 {
			return mailbox.Refuse(451, "later")
		}
		return nil
	})
	b.register(t)
	b.start(t)
	b.awaitState(t, "sent")
	require.Len(t, b.box.Messages(), 1)
	require.Equal(t, 3, b.count(t, `select attempts from mail`))
}

func TestAServerThatIsDownCostsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.sender.cfg.MaxAttempts = 1000
	addr := b.sender.smtp.cfg.Addr
	b.sender.smtp.cfg.Addr = "127.0.0.1:1"
	b.register(t)
	require.True(t, b.sender.next(t.Context()))
	require.Equal(t, 1, b.count(t, `select count(*) from mail where state = 'pending' and error like '%connect%'`))
	b.sender.smtp.cfg.Addr = addr
	b.start(t)
	b.awaitState(t, "sent")
}

func TestAClaimThatExpiredIsTakenOver(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.register(t)
	first, ok, err := b.list.claim(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	_, ok, err = b.list.claim(t.Context())
	require.NoError(t, err)
	require.False(t, ok, "claimed is claimed")

	_, err = b.pool.Exec(t.Context(), `update mail set lease_until = clock_timestamp() - interval '1 s'`)
	require.NoError(t, err)
	second, ok, err := b.list.claim(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, first.ID, second.ID)

	// The first sender wakes up. Nothing it does changes anything.
	ctx := t.Context()
	require.ErrorIs(t, b.list.submitting(ctx, first, time.Second), errClaimLost)
	require.ErrorIs(t, b.list.release(ctx, first, "x", 0), errClaimLost)
	require.ErrorIs(t, b.list.fail(ctx, first, "x"), errClaimLost)
	require.ErrorIs(t, b.list.doubt(ctx, first, "x"), errClaimLost)
	require.ErrorIs(t, b.list.sent(ctx, first, time.Now()), errClaimLost)
	require.NoError(t, b.list.submitting(ctx, second, time.Second))
	require.NoError(t, b.list.sent(ctx, second, time.Now()))
	require.Equal(t, 1, b.count(t, `select count(*) from outbox`))
}

func TestALeaseTooShortForTheSendIsNotUsed(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.register(t)
	m, _, err := b.list.claim(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, b.list.submitting(t.Context(), m, 2*time.Minute), errClaimLost)
	require.Equal(t, 1, b.count(t, `select count(*) from mail where state = 'claimed'`))
}

func TestASenderThatVanishedWhileSubmittingLeavesDoubt(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.register(t)
	m, _, err := b.list.claim(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.list.submitting(t.Context(), m, time.Second))
	_, err = b.pool.Exec(t.Context(), `update mail set lease_until = clock_timestamp() - interval '1 s'`)
	require.NoError(t, err)
	b.start(t)
	b.awaitState(t, "uncertain")
	require.Empty(t, b.box.Messages(), "never sent again by itself")
	require.ErrorIs(t, b.list.sent(t.Context(), m, time.Now()), errClaimLost)
}

func TestShutdownFinishesTheMailUnderWay(t *testing.T) {
	t.Parallel()
	inside, release := make(chan struct{}), make(chan struct{})
	b := setup(t, func(stage, _, _ string) error {
		if stage == "data" {
			close(inside)
			<-release
		}
		return nil
	})
	b.register(t)
	t.Run("run", func(t *testing.T) {
		b.start(t) // stopped when this subtest ends, while the server holds the mail
		<-inside
		close(release)
	})
	require.Equal(t, 1, b.count(t, `select count(*) from mail where state = 'sent'`))
}

func TestALostDatabaseIsSaidOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := &Sender{log: slog.New(slog.NewTextHandler(&log, nil))}
	for range 3 {
		s.heard(t.Context(), errors.New("gone"))
	}
	for range 3 {
		s.heard(t.Context(), nil)
	}
	require.Equal(t, 1, strings.Count(log.String(), "cannot be reached"))
	require.Equal(t, 1, strings.Count(log.String(), "is back"))
}

func TestPausesDoubleUpToTheirLimit(t *testing.T) {
	t.Parallel()
	s := &Sender{cfg: SenderConfig{RetryMin: time.Second, RetryMax: 5 * time.Second}}
	var pauses []time.Duration
	for attempt := range 5 {
		pauses = append(pauses, s.pause(attempt+1))
	}
	require.Equal(t, []time.Duration{1e9, 2e9, 4e9, 5e9, 5e9}, pauses)
}
