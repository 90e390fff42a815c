package ledger

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/examples/ledger/account"
)

var background = context.Background()

func TestMoneyComesAndLeaves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.opened(t)
	b.move(t, id, "credits", 1000, "").requireState(t, 1000, 2)
	b.move(t, id, "debits", 400, `,"expected_version":2`).requireState(t, 600, 3)
	b.move(t, id, "debits", 600, `,"expected_version":3`).requireState(t, 0, 4)
	b.requireWritten(t, id, 0, 4)
	rows, err := b.pool.Query(t.Context(), `select event_type from outbox order by version`)
	require.NoError(t, err)
	for _, want := range []string{"account-opened.v1", "funds-credited.v1", "funds-debited.v1", "funds-debited.v1"} {
		require.True(t, rows.Next())
		values, err := rows.Values()
		require.NoError(t, err)
		require.Equal(t, "com.example.ledger."+want, values[0])
	}
	rows.Close()
}

func TestWhatIsRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.opened(t)
	b.move(t, id, "credits", 500, "").requireState(t, 500, 2)
	before := b.stored(t)
	for name, test := range map[string]struct {
		path, body string
		status     int
		code       string
	}{
		"more than there is": {
			"debits", `{"amount":501,"currency":"EUR","expected_version":2}`, 422, "insufficient_funds",
		},
		"beyond the largest":    {"credits", `{"amount":9007199254740991,"currency":"EUR"}`, 422, "balance_too_large"},
		"nothing":               {"credits", `{"amount":0,"currency":"EUR"}`, 422, "invalid_amount"},
		"less than nothing":     {"debits", `{"amount":-1,"currency":"EUR","expected_version":2}`, 422, "invalid_amount"},
		"beyond exactness":      {"credits", `{"amount":9007199254740992,"currency":"EUR"}`, 422, "invalid_amount"},
		"a fraction":            {"credits", `{"amount":1.5,"currency":"EUR"}`, 400, "wrong_type"},
		"text":                  {"credits", `{"amount":"1","currency":"EUR"}`, 400, "wrong_type"},
		"another currency":      {"credits", `{"amount":1,"currency":"USD"}`, 422, "currency_mismatch"},
		"no such currency":      {"credits", `{"amount":1,"currency":"XAU"}`, 422, "unsupported_currency"},
		"in small letters":      {"credits", `{"amount":1,"currency":"eur"}`, 422, "unsupported_currency"},
		"an older version":      {"credits", `{"amount":1,"currency":"EUR","expected_version":1}`, 409, "version_mismatch"},
		"a version to come":     {"debits", `{"amount":1,"currency":"EUR","expected_version":3}`, 409, "version_mismatch"},
		"version nought":        {"debits", `{"amount":1,"currency":"EUR","expected_version":0}`, 409, "version_mismatch"},
		"an unknown member":     {"credits", `{"amount":1,"currency":"EUR","note":"x"}`, 400, "unknown_member"},
		"no amount":             {"credits", `{"currency":"EUR"}`, 400, "missing_member"},
		"a debit of no version": {"debits", `{"amount":1,"currency":"EUR"}`, 400, "missing_member"},
		"the version as text":   {"credits", `{"amount":1,"currency":"EUR","expected_version":"2"}`, 400, "wrong_type"},
	} {
		a := b.do(t, http.MethodPost, "/v1/accounts/"+string(id)+"/"+test.path, test.body, "Idempotency-Key", "k")
		require.Equal(t, test.status, a.Status, name)
		require.Equal(t, test.code, a.Code(t), name)
	}
	for _, path := range []string{"credits", "debits"} {
		a := b.move(t, "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", path, 1, `,"expected_version":1`)
		require.Equal(t, http.StatusNotFound, a.Status)
		require.Equal(t, "account_not_found", a.Code(t))
	}
	require.Equal(t, before, b.stored(t))
	b.requireWritten(t, id, 500, 2)
}

func TestARepeatedCommandGetsItsFirstAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := []string{"Idempotency-Key", `"k1"`}
	first := b.do(t, http.MethodPost, "/v1/accounts", `{"currency":"JPY"}`, key...)
	again := b.do(t, http.MethodPost, "/v1/accounts", `{"currency":"JPY"}`, key...)
	require.Equal(t, http.StatusCreated, again.Status)
	require.Equal(t, first.Body, again.Body)
	require.Equal(t, first.Header.Get("Location"), again.Header.Get("Location"))
	other := b.do(t, http.MethodPost, "/v1/accounts", `{"currency":"EUR"}`, key...)
	require.Equal(t, "idempotency_key_reused", other.Code(t))

	id := b.opened(t)
	for range 3 { // under its key a command has its first answer, at any version
		b.move(t, id, "credits", 100, `,"expected_version":1`, key...).requireState(t, 100, 2)
	}
	// A debit's keys are not a credit's.
	b.move(t, id, "debits", 100, `,"expected_version":2`, key...).requireState(t, 0, 3)
	b.move(t, id, "credits", 100, `,"expected_version":1`, key...).requireState(t, 100, 2)
	require.Equal(t, "idempotency_key_reused", b.move(t, id, "credits", 101, `,"expected_version":1`, key...).Code(t))
	require.Equal(t, "idempotency_key_reused", b.move(t, id, "credits", 100, "", key...).Code(t))
	b.requireWritten(t, id, 0, 3)
}

// A quoted key is the bare one.
func TestKeysThatLookAlikeDoNotCollide(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.opened(t)
	keys := []string{"key", "KEY", `" key"`, `"key "`, `"k ey"`, "key/", "key%20", `"k\"ey"`, "a/b", "a.b", "%61/b"}
	for i, key := range keys {
		b.move(t, id, "credits", 1, "", "Idempotency-Key", key).requireState(t, int64(i+1), int64(i+2))
	}
	b.move(t, id, "credits", 1, "", "Idempotency-Key", `"key"`).requireState(t, 1, 2)
	b.requireWritten(t, id, int64(len(keys)), int64(1+len(keys)))
}

func TestRacingCreditsAllHappen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.opened(t)
	const writers, each = 8, 5
	var group errgroup.Group
	for w := range writers {
		group.Go(func() error {
			for i := range each {
				_, err := b.commands.Credit(t.Context(), Movement{
					Key: fmt.Sprint(w, "-", i), Account: id, Money: account.Money{Amount: 7, Currency: "EUR"},
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	b.requireWritten(t, id, 7*writers*each, 1+writers*each)
}

func TestOfRacingCommandsOnOneVersionOneHappens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.opened(t)
	b.move(t, id, "credits", 1000, "").requireState(t, 1000, 2)
	const writers, rounds = 8, 5
	for round := range int64(rounds) {
		seen := 2 + round
		var won, lost atomic.Int64
		var group errgroup.Group
		for range writers {
			group.Go(func() error {
				_, err := b.commands.Debit(t.Context(), Movement{
					Account: id, Money: account.Money{Amount: 10, Currency: "EUR"}, Expected: &seen,
				})
				switch problem := mapError(err); {
				case err == nil:
					won.Add(1)
				case problem != nil && problem.Status == http.StatusConflict && problem.Code == "version_mismatch":
					lost.Add(1)
				default:
					return err
				}
				return nil
			})
		}
		require.NoError(t, group.Wait())
		require.EqualValues(t, 1, won.Load())
		require.EqualValues(t, writers-1, lost.Load())
	}
	b.requireWritten(t, id, 1000-10*rounds, 2+rounds)
}

// An operator may raise a version by hand.
func TestARaisedVersionIsTheAccountsVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.opened(t)
	_, err := b.pool.Exec(t.Context(), `update outbox_key set version = 7 where key = $1`, string(id))
	require.NoError(t, err)
	b.move(t, id, "credits", 5, `,"expected_version":7`).requireState(t, 5, 8)
}

func TestTheDatabaseKeepsBalancesAboveZero(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.opened(t)
	_, err := b.pool.Exec(t.Context(), `update account set balance = -1 where id = $1`, string(id))
	require.ErrorContains(t, err, "check constraint")
	_, err = b.pool.Exec(t.Context(), insertBalance, string(id), "EUR", 1, now())
	require.NoError(t, err)
	_, err = b.pool.Exec(t.Context(), updateBalance, string(id), "EUR", -1, 2, now())
	require.ErrorContains(t, err, "check constraint")
}
