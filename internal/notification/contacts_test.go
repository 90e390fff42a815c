package notification

import (
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

func TestTheContactFollowsTheEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, inbox.Applied, b.register(t))
	require.Equal(t, inbox.Applied, b.consume(t,
		domain.UserRenamed{UserID: someone, Name: "Countess", RenamedAt: time.Now().UTC()}, 2))
	require.Equal(t, inbox.Applied, b.consume(t,
		domain.EmailVerified{UserID: someone, Email: "ada@example.org", VerifiedAt: time.Now().UTC()}, 3))
	require.Equal(t, 1, b.count(t, `select count(*) from contact where user_id = $1 and email = 'ada@example.org'
		and name = 'Countess' and verified and version = 3`, string(someone)))
	require.Equal(t, 1, b.count(t, `select count(*) from mail join lease using (event_id) where state = 'pending'`))
}

func TestAChangeOfAContactThatWasRemovedIsGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, inbox.Applied, b.register(t))
	_, err := b.pool.Exec(t.Context(), `delete from contact`)
	require.NoError(t, err)
	require.Equal(t, inbox.Dead, b.consume(t,
		domain.UserRenamed{UserID: someone, Name: "Ada", RenamedAt: time.Now().UTC()}, 2))
	require.Equal(t, 1, b.count(t, `select count(*) from dead_letter where code = 'contact_missing'`))
	require.Zero(t, b.count(t, `select count(*) from contact`))
}

func TestAContactAndItsMailAreOneTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.pool.Exec(t.Context(), `
		create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
		create trigger refuse before insert on mail for each row execute function refuse()`)
	require.NoError(t, err)
	require.Equal(t, inbox.Dead, b.register(t))
	require.Zero(t, b.count(t, `select count(*) from contact`))
}

func TestUserEventsHaveTheirEffectOnce(t *testing.T) {
	t.Parallel()
	const other = domain.UserID("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c")
	at := time.Now().UTC()
	inboxtest.RequireIdempotent(t, inboxtest.Idempotence{
		Handlers:   func(*pgxpool.Pool) inboxtest.Handlers { return UserEvents() },
		Migrations: migrations.ForNotification(), Configure: inboxtest.Strict,
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
		Tables: []string{"contact", "mail", "lease"},
		Except: []string{"contact.updated_at", "mail.id", "mail.created_at", "lease.due_at", "lease.added_at"},
	})
}
