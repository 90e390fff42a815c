package domain_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/domain"
)

const (
	ada   = domain.UserID("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b")
	adaAt = domain.Email("Ada@example.org")
)

var (
	key  = domain.VerificationKey(strings.Repeat("k", 32))
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

func TestVerificationTokenProvesTheAddress(t *testing.T) {
	t.Parallel()
	token, err := key.Sign(ada, adaAt, noon)
	require.NoError(t, err)
	require.NotContains(t, token, "=")

	claim, err := domain.ParseToken(token)
	require.NoError(t, err)
	require.Equal(t, ada, claim.UserID)
	require.Equal(t, noon, claim.Expires)

	require.NoError(t, key.Verify(claim, adaAt, noon.Add(-time.Second)))
	require.NoError(t, key.Verify(claim, "ada@example.org", noon.Add(-time.Second)), "another spelling, the same address")
}

func TestVerificationTokenIsRefused(t *testing.T) {
	t.Parallel()
	token, err := key.Sign(ada, adaAt, noon)
	require.NoError(t, err)
	claim, err := domain.ParseToken(token)
	require.NoError(t, err)
	before := noon.Add(-time.Second)

	requireCode(t, domain.CodeTokenExpired, key.Verify(claim, adaAt, noon))
	requireCode(t, domain.CodeTokenInvalid, key.Verify(claim, "eve@example.org", before))
	otherKey := domain.VerificationKey(strings.Repeat("x", 32))
	requireCode(t, domain.CodeTokenInvalid, otherKey.Verify(claim, adaAt, before))
	requireCode(t, domain.CodeTokenInvalid, otherKey.Verify(claim, adaAt, noon.Add(time.Hour)))
}

func TestVerificationTokenBitByBit(t *testing.T) {
	t.Parallel()
	token, err := key.Sign(ada, adaAt, noon)
	require.NoError(t, err)
	raw, err := base64.RawURLEncoding.DecodeString(token)
	require.NoError(t, err)
	for bit := range len(raw) * 8 {
		forged := append([]byte(nil), raw...)
		forged[bit/8] ^= 1 << (bit % 8)
		claim, err := domain.ParseToken(base64.RawURLEncoding.EncodeToString(forged))
		if err == nil {
			err = key.Verify(claim, adaAt, noon.Add(-time.Second))
		}
		requireCode(t, domain.CodeTokenInvalid, err)
	}
}

func TestSignRefusesAForeignID(t *testing.T) {
	t.Parallel()
	_, err := key.Sign("no-uuid", adaAt, noon)
	requireCode(t, domain.CodeInvalidUserID, err)
}

func requireCode(t *testing.T, want domain.Code, err error) {
	t.Helper()
	var broken *domain.Error
	require.ErrorAs(t, err, &broken)
	require.Equal(t, want, broken.Code)
}
