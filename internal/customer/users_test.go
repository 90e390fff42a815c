package customer

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

func (b *bundle) rename(t *testing.T, id domain.UserID, name string, expected int64, headers ...string) answer {
	t.Helper()
	return b.do(t, http.MethodPatch, "/v1/customers/"+string(id),
		fmt.Sprintf(`{"name":%q,"expected_version":%d}`, name, expected), headers...)
}

func TestRenameTakesTheVersionOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	a := b.rename(t, id, "Countess", 1, "If-Match", `"1"`)
	require.Equal(t, http.StatusOK, a.Status, string(a.Body))
	require.Equal(t, `"2"`, a.Header.Get("ETag"))
	require.Equal(t, map[string]any{"user_id": string(id), "name": "Countess", "version": float64(2)}, a.JSON(t))
	require.Equal(t, 1, b.count(t, `select count(*) from outbox where event_type = $1 and version = 2 and key = $2`,
		contract.UserRenamed.Type, string(id)))
}

func TestRenameOfAnotherVersionChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	for _, expected := range []int64{0, 2, -1} {
		a := b.rename(t, id, "Eve", expected)
		a.requireProblem(t, http.StatusConflict, "version_mismatch")
		require.Equal(t, "The expected_version is not the customer's version.", a.JSON(t)["detail"])
	}
	a := b.rename(t, id, "Eve", 1, "If-Match", `"7"`)
	a.requireProblem(t, http.StatusPreconditionFailed, "precondition_failed")
	require.Equal(t, [3]int{1, 1, 1}, b.stored(t))
	require.Equal(t, 1, b.count(t, `select count(*) from users where name = 'Ada'`))
}

// A restored database may lack the user's last events.
func TestARaisedVersionIsTheUsersVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	_, err := b.pool.Exec(t.Context(), `update outbox_key set version = 3 where key = $1`, string(id))
	require.NoError(t, err)
	for i, e := range []event.Ruled{
		domain.UserRegistered{UserID: id, Email: "ada@example.org", Name: "Ada", RegisteredAt: now()},
		domain.UserRenamed{UserID: id, Name: "Countess", RenamedAt: now()},
		domain.UserRenamed{UserID: id, Name: "Ada King", RenamedAt: now()},
	} {
		require.Equal(t, inbox.Applied, b.consume(t, ProfileEvents(), e, int64(i+1)))
	}
	shown := b.do(t, http.MethodGet, "/v1/customers/"+string(id), "").JSON(t)["version"]
	require.Equal(t, 3.0, shown)
	require.Equal(t, http.StatusConflict, b.rename(t, id, "Eve", 1).Status)

	a := b.rename(t, id, "Ada Lovelace", 3)
	require.Equal(t, http.StatusOK, a.Status, string(a.Body))
	require.Equal(t, 4.0, a.JSON(t)["version"])
	require.Equal(t, inbox.Applied, b.consume(t, ProfileEvents(),
		domain.UserRenamed{UserID: id, Name: "Ada Lovelace", RenamedAt: now()}, 4))
	require.Equal(t, 4.0, b.do(t, http.MethodGet, "/v1/customers/"+string(id), "").JSON(t)["version"])
}

func TestOfTwinRenamesOneWins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	seen := statusesOfTwins(func(i int) int { return b.rename(t, id, fmt.Sprint("Ada ", i), 1).Status })
	require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: twins - 1}, seen)
	require.Equal(t, [3]int{1, 2, 1}, b.stored(t))
}

func TestOnlyASignupTakesAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := "/v1/customers/" + string(b.registered(t))
	for _, key := range []string{"k1", ""} {
		a := b.do(t, http.MethodPatch, path, `{"name":"Eve","expected_version":1}`, "Idempotency-Key", key)
		a.requireProblem(t, http.StatusBadRequest, "idempotency_key_unsupported", key)
	}
	require.Equal(t, [3]int{1, 1, 1}, b.stored(t), "nothing is changed")
	a := b.do(t, http.MethodPost, "/v1/verifications", `{"token":"x"}`, "Idempotency-Key", "k1")
	require.Equal(t, "idempotency_key_unsupported", a.Code(t))
}
