package customer

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract/contracttest"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/inboxtest"
)

func (b *bundle) consume(t *testing.T, mux *inbox.Mux, e event.Ruled, version int64) inbox.Outcome {
	t.Helper()
	box := inboxtest.NewBox(t, b.pool, mux, func(c *inbox.Config) {
		if version > 0 {
			c.Order = inbox.Strict
		}
	})
	return box.Deliver(t, contracttest.Event(t, e, version)).Outcome
}

const someone = domain.UserID("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b")

func TestTheProfileFollowsTheEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := "/v1/customers/" + string(someone)
	a := b.do(t, http.MethodGet, path, "")
	a.requireProblem(t, http.StatusNotFound, "user_not_found")

	sentAt := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	// The other topic may be faster.
	require.Equal(t, inbox.Applied, b.consume(t, MailEvents(),
		domain.VerificationEmailSent{UserID: someone, MailID: "m1", SentAt: sentAt}, 0))
	require.Equal(t, http.StatusNotFound, b.do(t, http.MethodGet, path, "").Status)

	steps := []struct {
		event event.Ruled
		want  map[string]any
	}{
		{
			domain.UserRegistered{UserID: someone, Email: "ada@example.org", Name: "Ada", RegisteredAt: sentAt},
			map[string]any{"name": "Ada", "status": "pending_verification", "version": float64(1)},
		},
		{
			domain.UserRenamed{UserID: someone, Name: "Countess", RenamedAt: sentAt},
			map[string]any{"name": "Countess", "status": "pending_verification", "version": float64(2)},
		},
		{
			domain.EmailVerified{UserID: someone, Email: "ada@example.org", VerifiedAt: sentAt},
			map[string]any{"name": "Countess", "status": "verified", "version": float64(3)},
		},
	}
	for i, step := range steps {
		require.Equal(t, inbox.Applied, b.consume(t, ProfileEvents(), step.event, int64(i+1)))
		a := b.do(t, http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, a.Status)
		step.want["user_id"], step.want["email"] = string(someone), "ada@example.org"
		step.want["verification_email_sent_at"] = "2026-01-02T03:04:05Z"
		require.Equal(t, step.want, a.JSON(t))
		etag := a.Header.Get("ETag")
		require.Equal(t, http.StatusNotModified, b.do(t, http.MethodGet, path, "", "If-None-Match", etag).Status)
		require.Equal(t, http.StatusOK, b.do(t, http.MethodHead, path, "").Status)
	}
}

func TestTheETagChangesWithWhatIsShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := "/v1/customers/" + string(someone)
	require.Equal(t, inbox.Applied, b.consume(t, ProfileEvents(),
		domain.UserRegistered{UserID: someone, Email: "ada@example.org", Name: "Ada", RegisteredAt: now()}, 1))
	before := b.do(t, http.MethodGet, path, "")
	require.Nil(t, before.JSON(t)["verification_email_sent_at"])
	require.Equal(t, inbox.Applied, b.consume(t, MailEvents(),
		domain.VerificationEmailSent{UserID: someone, MailID: "m1", SentAt: now()}, 0))
	after := b.do(t, http.MethodGet, path, "", "If-None-Match", before.Header.Get("ETag"))
	require.Equal(t, http.StatusOK, after.Status)
	require.NotEqual(t, before.Header.Get("ETag"), after.Header.Get("ETag"))
}

func TestAChangeWithoutItsProfileIsGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, inbox.Applied, b.consume(t, ProfileEvents(),
		domain.UserRegistered{UserID: someone, Email: "ada@example.org", Name: "Ada", RegisteredAt: now()}, 1))
	_, err := b.pool.Exec(t.Context(), `delete from profile`)
	require.NoError(t, err)
	require.Equal(t, inbox.Dead, b.consume(t, ProfileEvents(),
		domain.UserRenamed{UserID: someone, Name: "Ada", RenamedAt: now()}, 2))
	require.Equal(t, 1, b.count(t, `select count(*) from dead_letter
		where code = 'profile_missing' and class = 'permanent' and attempts = 1`))
	require.Zero(t, b.count(t, `select count(*) from profile`))
}

func TestTheFirstMailIsFoundInAnyOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sentAt := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for id, day := range map[string]int{"second": 2, "first": 1, "third": 3} {
		require.Equal(t, inbox.Applied, b.consume(t, MailEvents(),
			domain.VerificationEmailSent{UserID: someone, MailID: id, SentAt: sentAt.AddDate(0, 0, day)}, 0))
	}
	require.Equal(t, 1, b.count(t, `select count(*) from verification_mail where mail_id = 'first' and sent_at = $1`,
		sentAt.AddDate(0, 0, 1)))
}

func TestEventsHaveTheirEffectOnce(t *testing.T) {
	t.Parallel()
	const other = domain.UserID("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c")
	at := now()
	of := inboxtest.Idempotence{
		Handlers:   func(*pgxpool.Pool) inboxtest.Handlers { return ProfileEvents() },
		Migrations: migrations.ForCustomer(), Configure: inboxtest.Strict,
		Events: []event.Event{
			contracttest.Event(t, domain.UserRegistered{
				UserID: someone, Email: "ada@example.org", Name: "Ada", RegisteredAt: at,
			}, 1),
			contracttest.Event(t, domain.UserRenamed{UserID: someone, Name: "Countess", RenamedAt: at}, 2),
			contracttest.Event(t, domain.UserRegistered{
				UserID: other, Email: "eve@example.org", Name: "Eve", RegisteredAt: at,
			}, 1),
			contracttest.Event(t, domain.EmailVerified{UserID: someone, Email: "ada@example.org", VerifiedAt: at}, 3),
		},
		Tables: []string{"profile"}, Except: []string{"profile.updated_at"},
	}
	inboxtest.RequireIdempotent(t, of)

	of.Handlers, of.Configure = func(*pgxpool.Pool) inboxtest.Handlers { return MailEvents() }, nil
	of.Events, of.Tables = nil, []string{"verification_mail"}
	for i, user := range []domain.UserID{someone, other, someone} {
		of.Events = append(of.Events, contracttest.Event(t, domain.VerificationEmailSent{
			UserID: user, MailID: fmt.Sprint("m", i), SentAt: at.Add(-time.Duration(i) * time.Hour),
		}, 0))
	}
	inboxtest.RequireIdempotent(t, of)
}
