package domain

import "time"

// Status says how far a user has come.
type Status string

// The states of a user, in their order.
const (
	StatusPending  Status = "pending_verification"
	StatusVerified Status = "verified"
)

// User is the aggregate. Version counts its events: a user at version 3 has caused exactly three.
type User struct {
	ID           UserID
	Email        Email
	Name         Name
	Status       Status
	Version      int64
	RegisteredAt time.Time
}

// Register makes a new user and the event that says so.
func Register(id UserID, email Email, name Name, at time.Time) (User, UserRegistered) {
	user := User{ID: id, Email: email, Name: name, Status: StatusPending, Version: 1, RegisteredAt: at}
	return user, UserRegistered{UserID: id, Email: email, Name: name, RegisteredAt: at}
}

// Rename changes the name of the user that the caller has seen at version expected. If the user has changed since, it
// returns [CodeVersionMismatch] and nothing has happened. The same name again is a change like any other: the
// caller asked for a new version and gets one.
func (u User) Rename(name Name, expected int64, at time.Time) (User, UserRenamed, error) {
	if u.Version != expected {
		return u, UserRenamed{}, &Error{CodeVersionMismatch, "expected_version", "is not the customer's version"}
	}
	u.Name, u.Version = name, u.Version+1
	return u, UserRenamed{UserID: u.ID, Name: name, RenamedAt: at}, nil
}

// VerifyEmail records that the address is the user's, which the caller has seen proven ([VerificationKey.Verify]). A
// second proof changes nothing: the version stays, and there is nothing to say.
func (u User) VerifyEmail(at time.Time) (User, EmailVerified) {
	if u.Status == StatusVerified {
		return u, EmailVerified{}
	}
	u.Status, u.Version = StatusVerified, u.Version+1
	return u, EmailVerified{UserID: u.ID, Email: u.Email, VerifiedAt: at}
}
