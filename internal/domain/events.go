package domain

import (
	"cmp"
	"time"
)

// The JSON Schemas in api/events are the contract. Any change but a new field needs a new version of the event.

// UserRegistered is the first event of every user.
type UserRegistered struct {
	UserID       UserID    `json:"user_id"`
	Email        Email     `json:"email"`
	Name         Name      `json:"name"`
	RegisteredAt time.Time `json:"registered_at"`
}

// UserRenamed reports that a user changed their name.
type UserRenamed struct {
	UserID    UserID    `json:"user_id"`
	Name      Name      `json:"name"`
	RenamedAt time.Time `json:"renamed_at"`
}

// EmailVerified reports that a user followed the link in the verification mail.
type EmailVerified struct {
	UserID     UserID    `json:"user_id"`
	Email      Email     `json:"email"`
	VerifiedAt time.Time `json:"verified_at"`
}

// VerificationEmailSent reports that a mail server accepted the verification mail. It is Notification's event, with its
// own versions of the user.
type VerificationEmailSent struct {
	UserID UserID    `json:"user_id"`
	MailID string    `json:"mail_id"`
	SentAt time.Time `json:"sent_at"`
}

// Check returns an [*Error] for the first field that breaks its rule. Writers and readers call it.
func (e UserRegistered) Check() error {
	return cmp.Or(
		checkUUID(CodeInvalidUserID, "user_id", e.UserID),
		checkStored(CodeInvalidEmail, "email", e.Email, ParseEmail),
		checkStored(CodeInvalidName, "name", e.Name, ParseName),
		checkTime("registered_at", e.RegisteredAt),
	)
}

func (e UserRenamed) Check() error {
	return cmp.Or(
		checkUUID(CodeInvalidUserID, "user_id", e.UserID),
		checkStored(CodeInvalidName, "name", e.Name, ParseName),
		checkTime("renamed_at", e.RenamedAt),
	)
}

func (e EmailVerified) Check() error {
	return cmp.Or(
		checkUUID(CodeInvalidUserID, "user_id", e.UserID),
		checkStored(CodeInvalidEmail, "email", e.Email, ParseEmail),
		checkTime("verified_at", e.VerifiedAt),
	)
}

func (e VerificationEmailSent) Check() error {
	return cmp.Or(
		checkUUID(CodeInvalidUserID, "user_id", e.UserID),
		checkUUID(CodeInvalidMailID, "mail_id", e.MailID),
		checkTime("sent_at", e.SentAt),
	)
}

// About returns the user's id and the event's business time.
func (e UserRegistered) About() (user string, at time.Time) { return string(e.UserID), e.RegisteredAt }

func (e UserRenamed) About() (user string, at time.Time) { return string(e.UserID), e.RenamedAt }

func (e EmailVerified) About() (user string, at time.Time) { return string(e.UserID), e.VerifiedAt }

func (e VerificationEmailSent) About() (user string, at time.Time) { return string(e.UserID), e.SentAt }

// checkStored refuses values that the parser refuses or would change.
func checkStored[T ~string](code Code, field string, value T, parse func(string) (T, error)) error {
	parsed, err := parse(string(value))
	if err == nil && parsed != value {
		err = &Error{code, field, "is not as it is stored"}
	}
	return err
}

// A clock outside these years is a defect.
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
