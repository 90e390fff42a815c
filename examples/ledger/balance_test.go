package ledger

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/servicetest"
)

func (b *bundle) funded(t *testing.T, credits ...int64) (account.ID, []event.Event) {
	t.Helper()
	id := b.opened(t)
	for _, amount := range credits {
		require.Equal(t, http.StatusOK, b.move(t, id, "credits", amount, "").Status)
	}
	return id, b.published(t, id)
}

func TestTheBalanceFollowsTheEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.opened(t)
	b.move(t, id, "credits", 1000, "").requireState(t, 1000, 2)
	b.move(t, id, "debits", 300, `,"expected_version":2`).requireState(t, 700, 3)
	path := "/v1/accounts/" + string(id)
	a := b.do(t, http.MethodGet, path, "")
	require.Equal(t, http.StatusNotFound, a.Status, "the read side has heard nothing yet")
	require.Equal(t, "account_not_found", a.Code(t))

	c, events := newConsumer(t, b.pool), b.published(t, id)
	for i, balance := range []float64{0, 1000, 700} {
		require.Equal(t, []inbox.Outcome{inbox.Applied}, c.deliver(t, events[i]))
		a := b.do(t, http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, a.Status)
		require.Equal(t, map[string]any{
			"account_id": string(id), "currency": "EUR", "balance": balance, "version": float64(i + 1),
			"as_of": events[i].Time.UTC().Format(time.RFC3339Nano),
		}, a.JSON(t))
		etag := a.Header.Get("ETag")
		require.Equal(t, http.StatusNotModified, b.do(t, http.MethodGet, path, "", "If-None-Match", etag).Status)
		require.Equal(t, http.StatusOK, b.do(t, http.MethodHead, path, "").Status)
	}
}

func TestALowerVersionIsSkippedAndAHigherOneWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := newConsumer(t, b.pool)
	id, events := b.funded(t, 1, 20, 300, 4000)
	require.Equal(t, []inbox.Outcome{inbox.Applied, inbox.Applied}, c.deliver(t, events[:2]...))
	require.Equal(t, []inbox.Outcome{inbox.Duplicate}, c.deliver(t, events[1]))
	require.Equal(t, []inbox.Outcome{inbox.Stale}, c.deliver(t, twin(events[1])))
	require.Equal(t, []inbox.Outcome{inbox.Gap}, c.deliver(t, events[3]))
	require.Equal(t, []inbox.Outcome{inbox.Parked}, c.deliver(t, events[4]))
	require.Equal(t, []string{"version_gap", "parked_behind"}, b.codes(t))
	read, err := readBalance(t.Context(), b.pool, id)
	require.NoError(t, err)
	require.EqualValues(t, 1, read.Balance, "nothing is skipped and nothing guessed")

	c.deliver(t, events[2])
	c.resume(t)
	b.requireRead(t, id, 4321, 5)
}

func TestEventIDsThatLookAlikeDoNotCollide(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := newConsumer(t, b.pool)
	id, events := b.funded(t, 1, 20, 300, 4000, 50_000)
	alike := []string{"pay/\u00e9", "PAY/\u00c9", "pay/e\u0301", " pay/\u00e9", "pay/\u00e9 ", "pay\\\u00e9"}
	for i := range events {
		events[i].ID = alike[i]
	}
	require.Equal(t, slices.Repeat([]inbox.Outcome{inbox.Applied}, 6), c.deliver(t, events...))
	require.Equal(t, slices.Repeat([]inbox.Outcome{inbox.Duplicate}, 6), c.deliver(t, events...))
	b.requireRead(t, id, 54_321, 6)
}

func (b *bundle) codes(t *testing.T) (codes []string) {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `select code from dead_letter where state = 'waiting' order by id`)
	require.NoError(t, err)
	for rows.Next() {
		var code string
		require.NoError(t, rows.Scan(&code))
		codes = append(codes, code)
	}
	require.NoError(t, rows.Err())
	return codes
}

const countWrites = `
select sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint, pg_stat_force_next_flush() is null from pg_stat_user_tables`

// writes counts the rows written so far. The pool must have one connection: only that session's counts are flushed.
func writes(t *testing.T, pool *pgxpool.Pool) (rows int64) {
	t.Helper()
	for range 2 { // the first has them flushed when it ends
		require.NoError(t, pool.QueryRow(t.Context(), countWrites).Scan(&rows, nil))
	}
	return rows
}

func TestABatchOfKnownEventsWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, events := b.funded(t, 1, 20, 300)
	cfg := b.pool.Config()
	cfg.MaxConns = 1
	alone, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(alone.Close)
	c := newConsumer(t, alone)
	before := writes(t, alone)
	c.deliver(t, events...)
	first := writes(t, alone)
	require.Greater(t, first, before, "this is how a write is seen")
	const row = `select xmin::text || ctid::text from account_balance where account_id = $1`
	var place, again string
	require.NoError(t, alone.QueryRow(t.Context(), row, string(id)).Scan(&place))
	for range 5 { // after a few of them the inbox looks before it begins
		require.Equal(t, slices.Repeat([]inbox.Outcome{inbox.Duplicate}, len(events)), c.deliver(t, events...))
	}
	require.Equal(t, first, writes(t, alone))
	require.NoError(t, alone.QueryRow(t.Context(), row, string(id)).Scan(&again))
	require.Equal(t, place, again)
	b.requireRead(t, id, 321, 4)
}

func TestWhatCannotBeAppliedIsGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		member, value string // of the credit: the invalid member and its value
		code          string
	}{
		"unsupported currency": {"currency", `"XAU"`, "unsupported_currency"},
		"no amount":            {"amount", `null`, "schema_violation"},
		"no JSON":              {"amount", `20`, "invalid_json"},
		"another currency":     {"currency", `"USD"`, codeNoBalance},
		"another account":      {"account_id", `"0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"`, "subject_mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			c := newConsumer(t, b.pool)
			id, events := b.funded(t, 1, 20, 300)
			other, others := b.funded(t, 5)
			broken := events[2]
			var members map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(broken.Data, &members))
			members[test.member] = json.RawMessage(test.value)
			var err error
			broken.Data, err = json.Marshal(members)
			require.NoError(t, err)
			if test.code == "invalid_json" {
				broken.Data = broken.Data[:len(broken.Data)-1]
			}
			come := slices.Concat(events[:2], []event.Event{broken, events[3]}, others)
			require.Equal(t, []inbox.Outcome{
				inbox.Applied, inbox.Applied, inbox.Dead, inbox.Parked, inbox.Applied, inbox.Applied,
			}, c.deliver(t, come...))
			require.Equal(t, []string{test.code, inbox.CodeParked}, b.codes(t))
			require.EqualValues(t, 1, b.count(t, `select attempts from dead_letter where code = $1`, test.code))

			letter := b.count(t, `select id from dead_letter where code = $1`, test.code)
			_, err = deadletter.NewStore(b.pool).Edit(t.Context(), letter, deadletter.Edit{Payload: events[2].Data},
				audit.Change{By: "ana", Reason: "as it was meant"})
			require.NoError(t, err)
			c.replay(t)
			b.requireRead(t, id, 321, 4)
			b.requireRead(t, other, 5, 2)
		})
	}
}

func TestMovementsHaveTheirEffectOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, one := b.funded(t, 1, 20, 300)
	_, other := b.funded(t, 4000)
	consumer := servicetest.Consumer(t, Service.Describe(), balanceConsumer)
	inboxtest.RequireIdempotent(t, inboxtest.Idempotence{
		Handlers:   func(*pgxpool.Pool) inboxtest.Handlers { return consumer.Handlers },
		Migrations: Migrations(), Configure: inboxtest.Strict,
		Events: slices.Concat(one, other), Tables: []string{"account_balance", "inbox_key"},
	})
}
