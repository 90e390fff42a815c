package customer

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

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
		require.Equal(t, http.StatusConflict, a.Status)
		require.Equal(t, "version_mismatch", a.Code(t))
		require.Equal(t, "The expected_version is not the customer's version.", a.JSON(t)["detail"])
	}
	a := b.rename(t, id, "Eve", 1, "If-Match", `"7"`)
	require.Equal(t, http.StatusPreconditionFailed, a.Status)
	require.Equal(t, "precondition_failed", a.Code(t))
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
		all.Go(func() { statuses <- b.rename(t, id, fmt.Sprint("Ada ", i), 1).Status })
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
