package customer

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
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
	require.Equal(t, http.StatusOK, a.status, string(a.body))
	require.Equal(t, `"2"`, a.header.Get("ETag"))
	require.Equal(t, map[string]any{"user_id": string(id), "name": "Countess", "version": float64(2)}, a.json(t))
	require.Equal(t, 1, b.count(t, `select count(*) from outbox where event_type = $1 and version = 2 and key = $2`,
		contract.UserRenamed.Type, string(id)))
}

func TestRenameOfAnotherVersionChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	for _, expected := range []int64{0, 2, -1} {
		a := b.rename(t, id, "Eve", expected)
		require.Equal(t, http.StatusConflict, a.status)
		require.Equal(t, "version_mismatch", a.code(t))
		require.Equal(t, "The expected_version is not the customer's version.", a.json(t)["detail"])
	}
	a := b.rename(t, id, "Eve", 1, "If-Match", `"7"`)
	require.Equal(t, http.StatusPreconditionFailed, a.status)
	require.Equal(t, "precondition_failed", a.code(t))
	require.Equal(t, [3]int{1, 1, 1}, b.stored(t))
	require.Equal(t, 1, b.count(t, `select count(*) from users where name = 'Ada' and version = 1`))
}

func TestOfTwinRenamesOneWins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	const twins = 8
	statuses := make(chan int, twins)
	var all sync.WaitGroup
	for i := range twins {
		all.Go(func() { statuses <- b.rename(t, id, fmt.Sprint("Ada ", i), 1).status })
	}
	all.Wait()
	close(statuses)
	seen := map[int]int{}
	for status := range statuses {
		seen[status]++
	}
	require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: twins - 1}, seen)
	require.Equal(t, [3]int{1, 2, 1}, b.stored(t))
}

func (b *bundle) token(t *testing.T, id domain.UserID, email domain.Email, expires time.Time) string {
	t.Helper()
	token, err := testKey.Sign(id, email, expires)
	require.NoError(t, err)
	return token
}

func TestVerificationByPostAndByLink(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	token := b.token(t, id, "ada@example.org", time.Now().Add(time.Hour))
	a := b.do(t, http.MethodPost, "/v1/verifications", fmt.Sprintf(`{"token":%q}`, token))
	require.Equal(t, http.StatusOK, a.status, string(a.body))
	require.Equal(t, map[string]any{"user_id": string(id), "status": "verified", "version": float64(2)}, a.json(t))

	page := b.do(t, http.MethodGet, "/v1/verifications?token="+token, "")
	require.Equal(t, http.StatusOK, page.status)
	require.Contains(t, page.header.Get("Content-Type"), "text/html")
	require.Equal(t, "no-referrer", page.header.Get("Referrer-Policy"))
	require.Contains(t, string(page.body), "Thank you, Ada.")
	require.Equal(t, [3]int{1, 2, 1}, b.stored(t), "the second time is no event")
}

func TestThePageEscapesTheName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	require.Equal(t, http.StatusOK, b.rename(t, id, "<script>alert(1)</script>{{.ID}}", 1).status)
	token := b.token(t, id, "ada@example.org", time.Now().Add(time.Hour))
	page := b.do(t, http.MethodGet, "/v1/verifications?token="+token, "")
	require.Equal(t, http.StatusOK, page.status)
	require.NotContains(t, string(page.body), "<script>")
	require.Contains(t, string(page.body), "{{.ID}}")
}

func TestABadTokenVerifiesNobody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	in, past := time.Now().Add(time.Hour), time.Now().Add(-time.Second)
	for name, row := range map[string]struct {
		token, code string
		status      int
	}{
		"garbage":         {"garbage", "token_invalid", http.StatusUnprocessableEntity},
		"empty":           {"", "token_invalid", http.StatusUnprocessableEntity},
		"expired":         {b.token(t, id, "ada@example.org", past), "token_expired", http.StatusGone},
		"another address": {b.token(t, id, "eve@example.org", in), "token_invalid", http.StatusUnprocessableEntity},
		"nobody": {
			b.token(t, "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "ada@example.org", in), "token_invalid",
			http.StatusUnprocessableEntity,
		},
	} {
		for _, a := range []answer{
			b.do(t, http.MethodPost, "/v1/verifications", fmt.Sprintf(`{"token":%q}`, row.token)),
			b.do(t, http.MethodGet, "/v1/verifications?token="+row.token, ""),
		} {
			require.Equal(t, row.status, a.status, name)
			require.Equal(t, row.code, a.code(t), name)
		}
	}
	a := b.do(t, http.MethodGet, "/v1/verifications", "")
	require.Equal(t, "missing_parameter", a.code(t))
	require.Equal(t, [3]int{1, 1, 1}, b.stored(t))
}
