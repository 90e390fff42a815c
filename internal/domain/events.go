package domain

import "time"

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
