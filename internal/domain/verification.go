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

// Token is the content of a token whose signature is not checked yet.
type Token struct {
	UserID  UserID
	Expires time.Time
	raw     []byte
}

// ErrTokenInvalid is the error for every bad token.
var ErrTokenInvalid = &Error{CodeTokenInvalid, "token", "is not a valid verification token"}

// ParseToken reads a token. [VerificationKey.Verify] checks it.
func ParseToken(text string) (Token, error) {
	if len(text) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return Token{}, ErrTokenInvalid // before decoding, which skips line breaks
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return Token{}, ErrTokenInvalid
	}
	return Token{
		UserID:  UserID(fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:idBytes])),
		Expires: time.Unix(int64(binary.BigEndian.Uint64(raw[idBytes:])), 0).UTC(),
		raw:     raw,
	}, nil
}

// Verify checks the signature against the user's present address, then the expiry: a forger must not learn the second.
func (k VerificationKey) Verify(t Token, email Email, now time.Time) error {
	signed, signature := t.raw[:idBytes+expiryBytes], t.raw[idBytes+expiryBytes:]
	if !hmac.Equal(signature, k.mac(signed, email)) {
		return ErrTokenInvalid
	}
	if !now.Before(t.Expires) {
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
