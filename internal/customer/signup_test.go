package customer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
)

func TestASignupIsOneUserOneEventOneAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.signUp(t, `"k1"`, "Ada@Example.org", " Ada ")
	require.Equal(t, http.StatusCreated, a.Status, string(a.Body))
	require.Equal(t, [3]int{1, 1, 1}, b.stored(t))
	document := a.JSON(t)
	id := document["user_id"].(string)
	require.Equal(t, "/v1/customers/"+id, a.Header.Get("Location"))
	require.Equal(t, map[string]any{
		"user_id": id, "email": "Ada@example.org", "status": "pending_verification", "version": float64(1),
	}, document)

	var eventType, topic, key string
	var version int64
	var payload []byte
	require.NoError(t, b.pool.QueryRow(t.Context(), `select event_type, topic, key, version, payload from outbox`).
		Scan(&eventType, &topic, &key, &version, &payload))
	require.Equal(t, contract.UserRegistered.Type, eventType)
	require.Equal(t, contract.TopicUsers, topic)
	require.Equal(t, id, key)
	require.EqualValues(t, 1, version)
	var data domain.UserRegistered
	require.NoError(t, json.Unmarshal(payload, &data))
	require.Equal(t, domain.UserRegistered{
		UserID: domain.UserID(id), Email: "Ada@example.org", Name: "Ada", RegisteredAt: data.RegisteredAt,
	}, data)
}

func TestTheSameKeyGivesTheSameAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.signUp(t, `"k,1"`, "ada@example.org", "Ada")
	for _, key := range []string{`"k,1"`, `k,1`} {
		again := b.signUp(t, key, "ada@example.org", "Ada")
		require.Equal(t, first.Status, again.Status)
		require.Equal(t, string(first.Body), string(again.Body))
		require.Equal(t, first.Header.Get("Location"), again.Header.Get("Location"))
	}
	require.Equal(t, [3]int{1, 1, 1}, b.stored(t))
}

func TestTheSameKeyForAnotherRequestIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.registered(t)
	for _, other := range [][2]string{{"eve@example.org", "Ada"}, {"ada@example.org", "Eve"}} {
		a := b.signUp(t, "k1", other[0], other[1])
		a.requireProblem(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	}
	require.Equal(t, [3]int{1, 1, 1}, b.stored(t))
}

const twins = 8

// statusesOfTwins counts the statuses of concurrent requests.
func statusesOfTwins(do func(i int) (status int)) (seen map[int]int) {
	statuses := make(chan int, twins)
	var all sync.WaitGroup
	for i := range twins {
		all.Go(func() { statuses <- do(i) })
	}
	all.Wait()
	close(statuses)
	seen = map[int]int{}
	for status := range statuses {
		seen[status]++
	}
	return seen
}

func TestOfTwinSignupsOneWins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	seen := statusesOfTwins(func(i int) int { return b.signUp(t, fmt.Sprint("k", i), "ada@example.org", "Ada").Status })
	require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusConflict: twins - 1}, seen)
	require.Equal(t, [3]int{1, 1, 1}, b.stored(t))
}

func TestASignupThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"users", "outbox", "outbox_key", "idempotency_key"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			_, err := b.pool.Exec(t.Context(), fmt.Sprintf(`
				create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
				create trigger refuse before insert on %s for each row execute function refuse()`, table))
			require.NoError(t, err)
			a := b.signUp(t, "k1", "ada@example.org", "Ada")
			a.requireProblem(t, http.StatusInternalServerError, "internal")
			require.NotContains(t, string(a.Body), "refused", "nothing of the cause")
			require.Equal(t, [3]int{}, b.stored(t))
		})
	}
}
