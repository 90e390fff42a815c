package domain

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

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

// Rename returns [CodeVersionMismatch] if the user is not at version expected. The same name again is a change: the
// version rises.
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

// A token is user id (16 bytes), expiry in Unix seconds (8 bytes) and HMAC-SHA256 (32 bytes), in unpadded base64url.
// The address is signed, so a link to an earlier one verifies no later one, and not contained, since links get into
// logs.
const (
	idBytes     = 16
	expiryBytes = 8
	tokenBytes  = idBytes + expiryBytes + sha256.Size
)

// VerificationKey signs and checks links. Customer and Notification hold the same one.
type VerificationKey []byte

// Sign returns the token that proves the address until expires.
func (k VerificationKey) Sign(id UserID, email Email, expires time.Time) (string, error) {
	if err := checkUUID(CodeInvalidUserID, "user_id", id); err != nil {
		return "", err
	}
	token, _ := hex.DecodeString(strings.ReplaceAll(string(id), "-", "")) // a checked id is hexadecimal
	token = binary.BigEndian.AppendUint64(token, uint64(expires.Unix()))
	token = append(token, k.mac(token, email)...)
	return base64.RawURLEncoding.EncodeToString(token), nil
}

// Claim is the content of a token whose signature is not checked yet.
type Claim struct {
	UserID  UserID
	Expires time.Time
	raw     []byte
}

// ErrTokenInvalid is the error for every bad token.
var ErrTokenInvalid = &Error{CodeTokenInvalid, "token", "is not a valid verification token"}

// ParseClaim reads a token. [VerificationKey.Verify] checks it.
func ParseClaim(token string) (Claim, error) {
	if len(token) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return Claim{}, ErrTokenInvalid // before decoding, which skips line breaks
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return Claim{}, ErrTokenInvalid
	}
	return Claim{
		UserID:  UserID(fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:idBytes])),
		Expires: time.Unix(int64(binary.BigEndian.Uint64(raw[idBytes:])), 0).UTC(),
		raw:     raw,
	}, nil
}

// Verify checks the signature against the user's present address, then the expiry: a forger must not learn the second.
func (k VerificationKey) Verify(c Claim, email Email, now time.Time) error {
	signed, signature := c.raw[:idBytes+expiryBytes], c.raw[idBytes+expiryBytes:]
	if !hmac.Equal(signature, k.mac(signed, email)) {
		return ErrTokenInvalid
	}
	if !now.Before(c.Expires) {
		return &Error{CodeTokenExpired, "token", "has expired"}
	}
	return nil
}

func (k VerificationKey) mac(signed []byte, email Email) []byte {
	h := hmac.New(sha256.New, k)
	h.Write([]byte("twinbox email verification\x00"))
	h.Write(signed)
	h.Write([]byte(email.Key()))
	return h.Sum(nil)
}
