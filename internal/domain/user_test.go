package domain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/domain"
)

func TestAUserCountsTheirEvents(t *testing.T) {
	t.Parallel()
	user, registered := domain.Register(ada, adaAt, "Ada", noon)
	require.Equal(t, domain.UserRegistered{UserID: ada, Email: adaAt, Name: "Ada", RegisteredAt: noon}, registered)
	require.Equal(t, domain.StatusPending, user.Status)
	require.EqualValues(t, 1, user.Version)

	later := noon.Add(time.Hour)
	user, renamed, err := user.Rename("Countess", 1, later)
	require.NoError(t, err)
	require.Equal(t, domain.UserRenamed{UserID: ada, Name: "Countess", RenamedAt: later}, renamed)
	require.EqualValues(t, 2, user.Version)

	user, verified := user.VerifyEmail(later)
	require.Equal(t, domain.EmailVerified{UserID: ada, Email: adaAt, VerifiedAt: later}, verified)
	require.Equal(t, domain.StatusVerified, user.Status)
	require.EqualValues(t, 3, user.Version)

	again, said := user.VerifyEmail(later.Add(time.Hour))
	require.Zero(t, said, "a second proof is no event")
	require.Equal(t, user, again)
}

func TestRenameOfAChangedUserChangesNothing(t *testing.T) {
	t.Parallel()
	user, _ := domain.Register(ada, adaAt, "Ada", noon)
	for _, expected := range []int64{-1, 0, 2, 1 << 62} {
		after, event, err := user.Rename("Eve", expected, noon)
		requireCode(t, domain.CodeVersionMismatch, err)
		require.Equal(t, user, after)
		require.Zero(t, event)
	}
}

func TestParseUserIDTakesTheCanonicalFormAlone(t *testing.T) {
	t.Parallel()
	id, err := domain.ParseUserID(string(ada))
	require.NoError(t, err)
	require.Equal(t, ada, id)
	for name, alias := range map[string]string{
		"empty":      "",
		"upper case": "0190A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B",
		"urn":        "urn:uuid:" + string(ada),
		"braces":     "{" + string(ada) + "}",
		"no dashes":  "0190a1b2c3d47e5f8a9b0c1d2e3f4a5b",
		"nil":        "00000000-0000-0000-0000-000000000000",
		"line break": string(ada) + "\n",
		"a number":   "42",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := domain.ParseUserID(alias)
			requireCode(t, domain.CodeInvalidUserID, err)
		})
	}
}
