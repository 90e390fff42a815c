package customer

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/command"
	"example.com/twinbox/test/testkit"
)

// Plus-addresses, dots and letter cases share one mailbox.
func TestAMailboxIsNotFlooded(t *testing.T) {
	t.Parallel()
	const allowed, attempts = 5, 40
	b := setupWith(t, Config{SignupsPerMailbox: allowed})
	other := &Commands{
		Pool: b.pool, Outbox: b.commands.Outbox, Links: testKey, KeysFor: time.Hour, Timeout: time.Minute,
		Allowances: b.commands.Allowances,
	}
	answers := make(chan answer, attempts/2)
	errs := make(chan error, attempts/2)
	var all sync.WaitGroup
	for i := range attempts / 2 {
		all.Go(func() { answers <- b.signUp(t, fmt.Sprint("k", i), fmt.Sprintf("Ada+%d@example.org", i), "Ada") })
		all.Go(func() {
			address := "a" + strings.Repeat(".", i%2) + "da+t" + strconv.Itoa(i) + "@example.org"
			_, err := other.SignUp(t.Context(), Signup{Email: mustEmail(t, address), Name: "Ada"})
			errs <- err
		})
	}
	all.Wait()
	accepted := 0
	for range attempts / 2 {
		if a := <-answers; a.Status == http.StatusCreated {
			accepted++
		} else {
			a.requireProblem(t, http.StatusTooManyRequests, "signups_used_up")
			require.Equal(t, "#/email", a.JSON(t)["errors"].([]any)[0].(map[string]any)["pointer"])
			wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
			require.NoError(t, err)
			require.LessOrEqual(t, wait, 24*3600/allowed+1, "then the next one is accepted")
			require.Positive(t, wait)
		}
		if err := <-errs; err == nil {
			accepted++
		} else {
			var usedUp *allowanceError
			require.ErrorAs(t, err, &usedUp)
		}
	}
	require.Equal(t, allowed, accepted)
	require.Equal(t, allowed, b.count(t, `select count(*) from users`))
	require.Equal(t, allowed, b.count(t, `select count(*) from outbox`), "an event is a mail")
	require.Equal(t, http.StatusCreated, b.signUp(t, "k", "grace@example.org", "Grace").Status, "others sign up")
}

// The later one may get the row first.
func TestAnAllowanceIsWholeForSignupsAtTheSameTime(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{SignupsPerMailbox: 2})
	require.Equal(t, http.StatusCreated, b.signUp(t, "k", "ada@example.org", "Ada").Status)
	for round := range 8 {
		tx, err := b.pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `create temp table mailbox on commit drop as select id from signup_allowance`)
		require.NoError(t, err)
		_, err = b.pool.Exec(t.Context(), `delete from signup_allowance`)
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `insert into signup_allowance select id, clock_timestamp() from mailbox`)
		require.NoError(t, err)
		answers := make(chan answer, 2)
		for n := range 2 {
			id := fmt.Sprintf("%d-%d", round, n)
			go func() { answers <- b.signUp(t, id, "ada+"+id+"@example.org", "Ada") }()
			testkit.Until(t, func() bool {
				return n < b.count(t, `select count(*) from pg_stat_activity
					where datname = current_database() and wait_event_type = 'Lock'`)
			})
		}
		require.NoError(t, tx.Rollback(t.Context()))
		for range 2 {
			a := <-answers
			require.Equal(t, http.StatusCreated, a.Status, string(a.Body))
		}
	}
}

func TestAClientIsLimitedOverManyAddresses(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{
		RateLimit: 1000, SignupsPerClient: 3, SignupsPerMailbox: 5,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	signUp := func(n int, client string) answer {
		return b.do(t, http.MethodPost, "/v1/signups", fmt.Sprintf(`{"email":"p%d@example.org","name":"Ada"}`, n),
			"X-Forwarded-For", client)
	}
	for n := range 3 {
		require.Equal(t, http.StatusCreated, signUp(n, "2001:db8::"+strconv.Itoa(n)).Status, "one /64")
	}
	for n := 3; n < 10; n++ {
		a := signUp(n, "2001:db8::"+strconv.Itoa(n))
		a.requireProblem(t, http.StatusTooManyRequests, "signups_used_up")
		require.Equal(t, "Too many sign-ups for this client.", a.JSON(t)["detail"])
	}
	require.Equal(t, http.StatusCreated, signUp(3, "203.0.113.7").Status, "another client, and the address is free")
	require.Equal(t, 4, b.count(t, `select count(*) from users`))
}

func TestOnlyAcceptedSignupsCount(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{SignupsPerMailbox: 2})
	require.Equal(t, http.StatusCreated, b.signUp(t, "k1", "ada@example.org", "Ada").Status)
	for range 5 {
		require.Equal(t, http.StatusConflict, b.signUp(t, "k2", "ada@example.org", "Ada").Status)
	}
	require.Equal(t, http.StatusCreated, b.signUp(t, "k3", "ada+2@example.org", "Ada").Status)
	require.Equal(t, http.StatusTooManyRequests, b.signUp(t, "k4", "ada+3@example.org", "Ada").Status)
	require.Equal(t, http.StatusCreated, b.signUp(t, "k3", "ada+2@example.org", "Ada").Status,
		"a retry is the same sign-up")

	_, err := b.pool.Exec(t.Context(), `update signup_allowance set used_until = used_until - interval '12 hours'`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, b.signUp(t, "k4", "ada+3@example.org", "Ada").Status, "a share has passed")
	require.Equal(t, http.StatusTooManyRequests, b.signUp(t, "k5", "ada+4@example.org", "Ada").Status)
}

func TestAllowancesHoldNoAddressAndEnd(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{RateLimit: 1000, SignupsPerMailbox: 2, SignupsPerClient: 2})
	require.Equal(t, http.StatusCreated, b.signUp(t, "k1", "ada@example.org", "Ada").Status)
	require.Equal(t, 2, b.count(t, `select count(*) from signup_allowance`), "the mailbox's and the client's")
	require.Zero(t, b.count(t, `select count(*) from signup_allowance
where position('ada'::bytea in id) > 0 or position('127.0.0.1'::bytea in id) > 0`))
	require.NoError(t, command.Forget(t.Context(), b.pool, deleteExpired...))
	require.Equal(t, 2, b.count(t, `select count(*) from signup_allowance`), "still in use")
	for _, sql := range []string{
		`update signup_allowance set used_until = clock_timestamp()`,
		`update idempotency_key set expires_at = clock_timestamp()`,
	} {
		_, err := b.pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	require.NoError(t, command.Forget(t.Context(), b.pool, deleteExpired...))
	require.Zero(t, b.count(t, `select count(*) from signup_allowance`))
	require.Equal(t, [3]int{1, 1, 0}, b.stored(t), "kept answers end, too")
}

func TestAServiceThatTellsNoClientsApartLimitsNone(t *testing.T) {
	t.Parallel()
	require.Equal(t, Allowances{PerMailbox: 5}, Config{SignupsPerMailbox: 5, SignupsPerClient: 9}.allowances())
	require.Equal(t, Allowances{PerMailbox: 5, PerClient: 9},
		Config{SignupsPerMailbox: 5, SignupsPerClient: 9, RateLimit: 1}.allowances())
}
