package domain

import "time"

// Status is the state of a user.
type Status string

// The states of a user, in their order.
const (
	StatusPending  Status = "pending_verification"
	StatusVerified Status = "verified"
)

// User is the aggregate. Version is the number of its last event, which the outbox counts.
type User struct {
	ID           UserID
	Email        Email
	Name         Name
	Status       Status
	Version      int64
	RegisteredAt time.Time
}

// Register makes a new user and its event.
func Register(id UserID, email Email, name Name, at time.Time) (User, UserRegistered) {
	user := User{ID: id, Email: email, Name: name, Status: StatusPending, Version: 1, RegisteredAt: at}
	return user, UserRegistered{UserID: id, Email: email, Name: name, RegisteredAt: at}
}

// Rename returns [CodeVersionMismatch] if the user is not at version expected. The same name again is a change.
func (u User) Rename(name Name, expected int64, at time.Time) (User, UserRenamed, error) {
	if u.Version != expected {
		return u, UserRenamed{}, &Error{CodeVersionMismatch, "expected_version", "is not the customer's version"}
	}
	u.Name, u.Version = name, u.Version+1
	return u, UserRenamed{UserID: u.ID, Name: name, RenamedAt: at}, nil
}

// VerifyEmail records a proof ([VerificationKey.Verify]). A second call keeps the version and returns an empty event.
func (u User) VerifyEmail(at time.Time) (User, EmailVerified) {
	if u.Status == StatusVerified {
		return u, EmailVerified{}
	}
	u.Status, u.Version = StatusVerified, u.Version+1
	return u, EmailVerified{UserID: u.ID, Email: u.Email, VerifiedAt: at}
}
