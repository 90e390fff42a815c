package notification

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/lease"
)

// UserEvents handles Customer's events, in their order.
func UserEvents() *inbox.Mux {
	mux := inbox.NewMux()
	inbox.Handle(mux, contract.UserRegistered, welcome)
	inbox.Handle(mux, contract.UserRenamed, renameContact)
	inbox.Handle(mux, contract.EmailVerified, verifyContact)
	return mux
}

const insertContact = `insert into contact (user_id, email, name, version) values ($1, $2, $3, $4)`

const insertMail = `
insert into mail (id, event_id, template, user_id, recipient, correlation_id, traceparent, tracestate)
values ($1, $2, $3, $4, $5, $6, nullif($7, ''), nullif($8, ''))`

// welcome stores the mail for the sender. A mail that is sent here may be of a rollback, or lost in a crash.
func welcome(ctx context.Context, tx pgx.Tx, e event.Event, data domain.UserRegistered) error {
	mailID, cause := uuid.Must(uuid.NewV7()), e.Cause()
	return errors.Join(
		inbox.Queue(ctx, tx, insertContact, string(data.UserID), data.Email, data.Name, e.Version),
		inbox.Queue(ctx, tx, insertMail,
			mailID, e.ID, templateVerification, string(data.UserID), data.Email,
			cause.CorrelationID, cause.TraceParent, cause.TraceState),
		inbox.Queue(ctx, tx, lease.Intent, handlerVerification, e.ID),
	)
}

const updateContactName = `
update contact set name = $2, version = $3, updated_at = clock_timestamp() where user_id = $1 and version < $3`

func renameContact(ctx context.Context, tx pgx.Tx, e event.Event, data domain.UserRenamed) error {
	return inbox.QueueRows(ctx, tx, errNoContact, updateContactName, data.UserID, data.Name, e.Version)
}

const updateContactVerified = `
update contact set verified = true, version = $2, updated_at = clock_timestamp() where user_id = $1 and version < $2`

func verifyContact(ctx context.Context, tx pgx.Tx, e event.Event, data domain.EmailVerified) error {
	return inbox.QueueRows(ctx, tx, errNoContact, updateContactVerified, data.UserID, e.Version)
}

// errNoContact is permanent: events come in order, so a later attempt finds no contact either.
var errNoContact = inbox.PermanentAs("contact_missing",
	errors.New("no contact below this version: an earlier event of the user is missing"))
