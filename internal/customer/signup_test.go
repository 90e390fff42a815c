package customer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/command"
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
	first := b.signUp(t, `"k1"`, "ada@example.org", "Ada")
	for _, key := range []string{`"k1"`, `k1`} {
		again := b.signUp(t, key, "ada@example.org", "Ada")
		require.Equal(t, first.Status, again.Status)
		require.Equal(t, string(first.Body), string(again.Body))
		require.Equal(t, first.Header.Get("Location"), again.Header.Get("Location"))
	}
	require.Equal(t, [3]int{1, 1, 1}, b.stored(t))
}

func TestWithoutAKeyEachRequestIsDoneOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const body = `{"email":"ada@example.org","name":"Ada"}`
	first := b.do(t, http.MethodPost, "/v1/signups", body)
	require.Equal(t, http.StatusCreated, first.Status, string(first.Body))
	require.Equal(t, [3]int{1, 1, 0}, b.stored(t), "user, event, and no key")
	again := b.do(t, http.MethodPost, "/v1/signups", body)
	require.Equal(t, http.StatusConflict, again.Status)
	require.Equal(t, "email_taken", again.Code(t), "the first answer is not repeated: nothing names the request")
	require.Equal(t, [3]int{1, 1, 0}, b.stored(t))
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

func TestAKeyInFlightIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	release := b.holdKey(t, "k1")
	a := b.signUp(t, "k1", "ada@example.org", "Ada")
	a.requireProblem(t, http.StatusConflict, "idempotency_key_in_flight")
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	release()
	require.Equal(t, http.StatusCreated, b.signUp(t, "k1", "ada@example.org", "Ada").Status, "the key is free again")
}

func (b *bundle) holdKey(t *testing.T, key string) (release func()) {
	t.Helper()
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	_, err = tx.Exec(t.Context(),
		`select pg_advisory_xact_lock(hashtextextended($1 || chr(31) || $2, 0))`, "signup", key)
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Commit(t.Context())) }
}

func TestAnAnswerIsGivenBesideAnotherRetry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.signUp(t, "k1", "ada@example.org", "Ada")
	b.holdKey(t, "k1")
	again := b.signUp(t, "k1", "ada@example.org", "Ada")
	require.Equal(t, http.StatusCreated, again.Status, string(again.Body))
	require.Equal(t, string(first.Body), string(again.Body))
	require.Equal(t, "idempotency_key_reused", b.signUp(t, "k1", "eve@example.org", "Eve").Code(t))

	_, err := b.pool.Exec(t.Context(), `update idempotency_key set expires_at = clock_timestamp() - interval '1 s'`)
	require.NoError(t, err)
	require.Equal(t, "idempotency_key_in_flight", b.signUp(t, "k1", "eve@example.org", "Eve").Code(t),
		"an answer that has expired is none")
}

func TestAnExpiredKeyIsForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.registered(t)
	_, err := b.pool.Exec(t.Context(), `update idempotency_key set expires_at = clock_timestamp() - interval '1 s'`)
	require.NoError(t, err)
	a := b.signUp(t, "k1", "eve@example.org", "Eve")
	require.Equal(t, http.StatusCreated, a.Status)
	require.Equal(t, [3]int{2, 2, 1}, b.stored(t), "the old answer was overwritten")

	_, err = b.pool.Exec(t.Context(), `update idempotency_key set expires_at = clock_timestamp() - interval '1 s'`)
	require.NoError(t, err)
	require.NoError(t, command.Forget(t.Context(), b.pool, deleteExpired...))
	require.Equal(t, [3]int{2, 2, 0}, b.stored(t))
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

func TestAClientThatHangsUpDoesNotUndoTheCommit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	_, err := b.commands.SignUp(ctx, Signup{Key: "k1", Email: "ada@example.org", Name: "Ada"})
	require.NoError(t, err)
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

func TestWithoutItsDatabaseTheServiceSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dead, err := pgxpool.New(t.Context(), "postgres://u@127.0.0.1:1/none?connect_timeout=1")
	require.NoError(t, err)
	t.Cleanup(dead.Close)
	b.commands.Pool = dead
	a := b.signUp(t, "k1", "ada@example.org", "Ada")
	a.requireProblem(t, http.StatusServiceUnavailable, "unavailable")
	require.NotEmpty(t, a.Header.Get("Retry-After"))
}
