package customer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/customer/openapi"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

// ProfileEvents handles the service's own events, which build the profile, in their order.
func ProfileEvents() *inbox.Mux {
	mux := inbox.NewMux()
	inbox.Handle(mux, contract.UserRegistered, createProfile)
	inbox.Handle(mux, contract.UserRenamed, renameProfile)
	inbox.Handle(mux, contract.EmailVerified, verifyProfile)
	return mux
}

// MailEvents handles Notification's events. Each is complete and needs no version.
func MailEvents() *inbox.Mux {
	mux := inbox.NewMux()
	inbox.Handle(mux, contract.VerificationEmailSent, noteVerificationMail)
	return mux
}

// The inbox prevents duplicates: a second profile is a defect.
const insertProfile = `
insert into profile (user_id, email, name, status, version) values ($1, $2, $3, $4, $5)`

func createProfile(ctx context.Context, tx pgx.Tx, e event.Event, data domain.UserRegistered) error {
	return inbox.Queue(ctx, tx, insertProfile,
		string(data.UserID), data.Email, data.Name, domain.StatusPending, e.Version)
}

const updateProfileName = `
update profile set name = $2, version = $3, updated_at = clock_timestamp() where user_id = $1 and version < $3`

func renameProfile(ctx context.Context, tx pgx.Tx, e event.Event, data domain.UserRenamed) error {
	return inbox.QueueRows(ctx, tx, errNoProfile, updateProfileName, data.UserID, data.Name, e.Version)
}

const updateProfileStatus = `
update profile set status = $2, version = $3, updated_at = clock_timestamp() where user_id = $1 and version < $3`

func verifyProfile(ctx context.Context, tx pgx.Tx, e event.Event, data domain.EmailVerified) error {
	return inbox.QueueRows(ctx, tx, errNoProfile, updateProfileStatus, data.UserID, domain.StatusVerified, e.Version)
}

// errNoProfile is permanent: events come in order, so a later attempt finds no profile either.
var errNoProfile = inbox.PermanentAs("profile_missing",
	errors.New("no profile below this version: an earlier event of the user is missing"))

// The first mail counts, in any order of arrival.
const insertVerificationMail = `
insert into verification_mail as m (user_id, mail_id, sent_at) values ($1, $2, $3)
on conflict (user_id) do update set mail_id = excluded.mail_id, sent_at = excluded.sent_at
where excluded.sent_at < m.sent_at`

func noteVerificationMail(ctx context.Context, tx pgx.Tx, _ event.Event, data domain.VerificationEmailSent) error {
	return inbox.Queue(ctx, tx, insertVerificationMail, data.UserID, data.MailID, data.SentAt)
}

const selectProfile = `
select p.user_id, p.email, p.name, p.status, p.version, m.sent_at as verification_email_sent_at
from profile p left join verification_mail m using (user_id)
where p.user_id = $1`

func readProfile(ctx context.Context, pool *pgxpool.Pool, id domain.UserID) (openapi.Customer, error) {
	rows, _ := pool.Query(ctx, selectProfile, id)
	profile, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[openapi.Customer])
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return profile, errNoUser
	case err != nil:
		return profile, fmt.Errorf("read profile: %w", err)
	}
	return profile, nil
}
