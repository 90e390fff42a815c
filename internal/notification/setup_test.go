package notification

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/mailbox"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/contract/contracttest"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/mail"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "30")
	pgtest.Main(m)
}

const patience = 30 * time.Second

const someone = domain.UserID("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b")

var testKey = domain.VerificationKey(strings.Repeat("k", 32))

type bundle struct {
	pool   *pgxpool.Pool
	outbox *outbox.Outbox
	box    *mailbox.Mailbox
	sender *Sender
}

func setup(t *testing.T) *bundle {
	t.Helper()
	pool := pgtest.New(t, migrations.ForNotification()...)
	box, err := mailbox.Start(t.Context(), mailbox.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	out, err := newOutbox()
	require.NoError(t, err)
	b := &bundle{pool: pool, box: box, outbox: out}
	b.sender = b.newSender(t, nil)
	return b
}

func newOutbox() (*outbox.Outbox, error) {
	events, err := contract.Load()
	if err != nil {
		return nil, err
	}
	return outbox.New(outbox.Config{Validate: events.Validate})
}

var quick = lease.Settings{
	Workers: 2, Lease: time.Minute, Poll: 10 * time.Millisecond, MaxAttempts: 3,
	RetryMin: time.Millisecond, RetryMax: 4 * time.Millisecond, OnUncertain: lease.Park,
}

func (b *bundle) newSender(t *testing.T, change func(*Sender)) *Sender {
	t.Helper()
	setup := newSetup(b.pool, b.outbox, b.box.SMTPAddr())
	if change != nil {
		change(&setup)
	}
	sender, err := newSender(setup)
	require.NoError(t, err)
	return sender
}

func newSetup(pool *pgxpool.Pool, out *outbox.Outbox, smtpAddr string) Sender {
	return Sender{
		settings: quick, pool: pool, outbox: out, log: slog.New(slog.DiscardHandler), registerer: prometheus.NewRegistry(),
		writer:  Writer{Links: testKey, PublicURL: "http://127.0.0.1:8080", LinksFor: time.Hour, Host: "example.com"},
		suspect: func() {},
		smtp: &mail.Sender{
			Config: mail.Config{Addr: smtpAddr, TLS: "none", Timeout: 25 * time.Second}, // a slow machine makes no doubtful mail
			From:   "Twinbox <no-reply@example.com>",
		},
	}
}

func (b *bundle) start(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- b.sender.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
}

func (b *bundle) register(t *testing.T) inbox.Outcome {
	t.Helper()
	return b.consume(t, domain.UserRegistered{
		UserID: someone, Email: "ada@example.org", Name: "Ada", RegisteredAt: time.Now().UTC(),
	}, 1)
}

func (b *bundle) consume(t *testing.T, payload event.Ruled, version int64) inbox.Outcome {
	t.Helper()
	box := inboxtest.NewBox(t, b.pool, UserEvents(), inboxtest.Strict)
	return box.Deliver(t, contracttest.Event(t, payload, version)).Outcome
}

func (b *bundle) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

func (b *bundle) awaitMail(t *testing.T) []mailbox.Message {
	t.Helper()
	testkit.Until(t, func() bool { return len(b.box.Messages()) > 0 }, "no mail came")
	return b.box.Messages()
}

func (b *bundle) awaitState(t *testing.T, state string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			var row string
			err := b.pool.QueryRow(context.WithoutCancel(t.Context()), `select lease::text from lease`).Scan(&row)
			t.Log("the mail is", row, err)
		}
	}()
	testkit.Until(t, func() bool {
		return b.count(t, `select count(*) from lease where state = $1`, state) == 1
	}, "mail never %s", state)
}

func (b *bundle) owe(t *testing.T, id uuid.UUID, email string) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		user := uuid.Must(uuid.NewV7())
		_, contactErr := tx.Exec(t.Context(), insertContact, user, email, "Someone", 1)
		_, mailErr := tx.Exec(t.Context(), insertMail, id, id.String(), templateVerification, user, email,
			id.String(), "", "")
		_, leaseErr := tx.Exec(t.Context(), lease.Intent, handlerVerification, id.String())
		return errors.Join(contactErr, mailErr, leaseErr)
	}))
}
