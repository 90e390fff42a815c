package domain

import (
	"cmp"
	"time"
)

// The events, as their payloads are written to the log and read from it. The JSON Schemas in api/events are the
// contract; a test holds the two together. A field may be added, never renamed, retyped or removed: that is a new
// version of the event.

// UserRegistered says that a person signed up. It is the first event of every user.
type UserRegistered struct {
	UserID       UserID    `json:"user_id"`
	Email        Email     `json:"email"`
	Name         Name      `json:"name"`
	RegisteredAt time.Time `json:"registered_at"`
}

// UserRenamed says that a user changed their name.
type UserRenamed struct {
	UserID    UserID    `json:"user_id"`
	Name      Name      `json:"name"`
	RenamedAt time.Time `json:"renamed_at"`
}

// EmailVerified says that a user followed the link in the verification mail.
type EmailVerified struct {
	UserID     UserID    `json:"user_id"`
	Email      Email     `json:"email"`
	VerifiedAt time.Time `json:"verified_at"`
}

// VerificationEmailSent says that a mail server took the verification mail over. It is Notification's event; the
// user is its aggregate there too, with a count of its own.
type VerificationEmailSent struct {
	UserID UserID    `json:"user_id"`
	MailID string    `json:"mail_id"`
	SentAt time.Time `json:"sent_at"`
}

// Event is one of the events of this package. Its values are made by the functions of this package; those that were
// read from a log are not, so both sides of the log ask Check.
type Event interface {
	// Check returns an [*Error] for the first field that no function of this package could have filled in. Addresses and
	// names must be in the form that their parsers return: what a parser changes was not made by it.
	Check() error
	// About is the id of the user, and the event's business time.
	About() (user string, at time.Time)
}

// Check implements [Event].
func (e UserRegistered) Check() error {
	return cmp.Or(
		checkUUID(CodeInvalidUserID, "user_id", e.UserID),
		checkStored(CodeInvalidEmail, "email", e.Email, ParseEmail),
		checkStored(CodeInvalidName, "name", e.Name, ParseName),
		checkTime("registered_at", e.RegisteredAt),
	)
}

// Check implements [Event].
func (e UserRenamed) Check() error {
	return cmp.Or(
		checkUUID(CodeInvalidUserID, "user_id", e.UserID),
		checkStored(CodeInvalidName, "name", e.Name, ParseName),
		checkTime("renamed_at", e.RenamedAt),
	)
}

// Check implements [Event].
func (e EmailVerified) Check() error {
	return cmp.Or(
		checkUUID(CodeInvalidUserID, "user_id", e.UserID),
		checkStored(CodeInvalidEmail, "email", e.Email, ParseEmail),
		checkTime("verified_at", e.VerifiedAt),
	)
}

// Check implements [Event].
func (e VerificationEmailSent) Check() error {
	return cmp.Or(
		checkUUID(CodeInvalidUserID, "user_id", e.UserID),
		checkUUID(CodeInvalidMailID, "mail_id", e.MailID),
		checkTime("sent_at", e.SentAt),
	)
}

// About implements [Event].
func (e UserRegistered) About() (user string, at time.Time) { return string(e.UserID), e.RegisteredAt }

// About implements [Event].
func (e UserRenamed) About() (user string, at time.Time) { return string(e.UserID), e.RenamedAt }

// About implements [Event].
func (e EmailVerified) About() (user string, at time.Time) { return string(e.UserID), e.VerifiedAt }

// About implements [Event].
func (e VerificationEmailSent) About() (user string, at time.Time) { return string(e.UserID), e.SentAt }

// checkStored refuses what its parser refuses or would change, such as capitals in a domain or blanks around a name.
func checkStored[T ~string](code Code, field string, value T, parse func(string) (T, error)) error {
	parsed, err := parse(string(value))
	if err == nil && parsed != value {
		err = &Error{code, field, "is not as it is stored"}
	}
	return err
}

// The years in which things happen here. A clock outside them is a defect, not a time.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

func checkTime(field string, at time.Time) error {
	if at.Before(earliest) || !at.Before(latest) {
		return &Error{CodeInvalidTime, field, "is outside the years 2000 to 2199"}
	}
	return nil
}
