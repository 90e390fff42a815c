package domain

import (
	"cmp"
	"time"
)

// Codes of events alone: no client of an API gives a time or the id of a mail.
const (
	CodeInvalidTime   Code = "invalid_time"
	CodeInvalidMailID Code = "invalid_mail_id"
)

// Event is one of the events of this package. Its values are made by the functions of this package; those that were
// read from a log are not, so both sides of the log ask Check.
type Event interface {
	// Check returns an [*Error] for the first field that no function of this package could have filled in. Addresses and
	// names must be in the form that their parsers return: what a parser changes was not made by it.
	Check() error
	// About is the id of the user.
	About() string
	// HappenedAt is the event's business time.
	HappenedAt() time.Time
}

var (
	_ Event = UserRegistered{}
	_ Event = UserRenamed{}
	_ Event = EmailVerified{}
	_ Event = VerificationEmailSent{}
)

// Check implements [Event].
func (e UserRegistered) Check() error {
	return cmp.Or(e.UserID.check(), e.Email.check(), e.Name.check(), checkTime("registered_at", e.RegisteredAt))
}

// Check implements [Event].
func (e UserRenamed) Check() error {
	return cmp.Or(e.UserID.check(), e.Name.check(), checkTime("renamed_at", e.RenamedAt))
}

// Check implements [Event].
func (e EmailVerified) Check() error {
	return cmp.Or(e.UserID.check(), e.Email.check(), checkTime("verified_at", e.VerifiedAt))
}

// Check implements [Event].
func (e VerificationEmailSent) Check() error {
	return cmp.Or(e.UserID.check(), checkMailID(e.MailID), checkTime("sent_at", e.SentAt))
}

// About implements [Event].
func (e UserRegistered) About() string { return string(e.UserID) }

// About implements [Event].
func (e UserRenamed) About() string { return string(e.UserID) }

// About implements [Event].
func (e EmailVerified) About() string { return string(e.UserID) }

// About implements [Event].
func (e VerificationEmailSent) About() string { return string(e.UserID) }

// HappenedAt implements [Event].
func (e UserRegistered) HappenedAt() time.Time { return e.RegisteredAt }

// HappenedAt implements [Event].
func (e UserRenamed) HappenedAt() time.Time { return e.RenamedAt }

// HappenedAt implements [Event].
func (e EmailVerified) HappenedAt() time.Time { return e.VerifiedAt }

// HappenedAt implements [Event].
func (e VerificationEmailSent) HappenedAt() time.Time { return e.SentAt }

func (id UserID) check() error {
	if !isCanonicalUUID(string(id)) {
		return &Error{CodeInvalidUserID, "user_id", "is not a lower-case UUID"}
	}
	return nil
}

func (e Email) check() error {
	parsed, err := ParseEmail(string(e))
	if err == nil && parsed != e {
		err = &Error{CodeInvalidEmail, "email", "has capitals in its domain"}
	}
	return err
}

func (n Name) check() error {
	parsed, err := ParseName(string(n))
	if err == nil && parsed != n {
		err = &Error{CodeInvalidName, "name", "is not as it is stored: it has blanks around it"}
	}
	return err
}

func checkMailID(id string) error {
	if !isCanonicalUUID(id) {
		return &Error{CodeInvalidMailID, "mail_id", "is not a lower-case UUID"}
	}
	return nil
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
