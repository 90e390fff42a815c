package domain

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"
)

// A verification token is user id (16 bytes), expiry in Unix seconds (8 bytes) and HMAC-SHA256 (32 bytes), in
// unpadded base64url. The address is signed but not contained: a link must not carry personal data into logs and
// histories, and a link sent to an earlier address must not verify a later one.
const (
	idBytes     = 16
	expiryBytes = 8
	tokenBytes  = idBytes + expiryBytes + sha256.Size
)

// VerificationKey signs and checks verification links. Customer and Notification hold the same one.
type VerificationKey []byte

// Sign returns the token with which the reader of the address's mail proves it, until expires.
func (k VerificationKey) Sign(id UserID, email Email, expires time.Time) (string, error) {
	if err := id.check(); err != nil {
		return "", err
	}
	token, err := hex.DecodeString(strings.ReplaceAll(string(id), "-", ""))
	if err != nil {
		return "", err // cannot happen: it is a UUID
	}
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

// ParseClaim reads a token. It trusts nothing: [VerificationKey.Verify] does the checking once the caller knows the
// user's address.
func ParseClaim(token string) (Claim, error) {
	if len(token) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return Claim{}, invalidToken() // before decoding, which skips line breaks
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return Claim{}, invalidToken()
	}
	return Claim{
		UserID:  userIDFromBytes(raw[:idBytes]),
		Expires: time.Unix(int64(binary.BigEndian.Uint64(raw[idBytes:])), 0).UTC(),
		raw:     raw,
	}, nil
}

// Verify checks the claim's signature against the user's present address, then its expiry. The order matters: a
// forged token must not learn whether it would have expired.
func (k VerificationKey) Verify(c Claim, email Email, now time.Time) error {
	signed, signature := c.raw[:idBytes+expiryBytes], c.raw[idBytes+expiryBytes:]
	if !hmac.Equal(signature, k.mac(signed, email)) {
		return invalidToken()
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

func invalidToken() error {
	return &Error{CodeTokenInvalid, "token", "is not a valid verification token"}
}

func userIDFromBytes(raw []byte) UserID {
	s := hex.EncodeToString(raw)
	return UserID(s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:])
}
