package relay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

func confirm(t *testing.T, pool *pgxpool.Pool, code string) (text string, err error) {
	t.Helper()
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		text, err = Confirm(t.Context(), tx, code)
		return err
	})
	return text, err
}

const refusal = "events_unknown: 3 records of users have no row here: look: twice."

func TestARefusalIsConfirmedByItsCode(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	_, err := confirm(t, pool, "events_unknown")
	require.ErrorIs(t, err, ErrNotRefused)

	execSQL(t, pool, `update outbox_cursor set refused = $1`, refusal)
	want := Refusal{Code: "events_unknown", Text: "3 records of users have no row here: look: twice."}
	require.Equal(t, &want, statusOf(t, pool).Refused)
	for _, code := range []string{"log_unplaceable", "events", "events_unknown: 3 records of users have no row here", ""} {
		_, err = confirm(t, pool, code)
		require.ErrorIs(t, err, ErrOtherRefusal, code)
	}
	require.Equal(t, &want, statusOf(t, pool).Refused)

	for range 2 {
		text, err := confirm(t, pool, "events_unknown")
		require.NoError(t, err)
		require.Equal(t, refusal, text)
	}
	want.Confirmed = true
	require.Equal(t, &want, statusOf(t, pool).Refused)
	execSQL(t, pool, `update outbox_cursor set refused = refused || ' Four now.'`)
	require.False(t, statusOf(t, pool).Refused.Confirmed, "a text that the operator did not confirm")
}

func TestStatusShowsALossWhileItLasts(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	const healing = `{"users/0":{"end":3,"time":1,"expected":4,"from":2},"users/1":{"end":1,"time":1,"expected":1}}`
	for name, row := range map[string]struct {
		database, broker string // how long ago; empty: never
		ends             string
		want             [2]bool // the database, the broker
	}{
		"nothing":                     {"", "", `{}`, [2]bool{false, false}},
		"no end is known":             {"", "", `null`, [2]bool{false, false}},
		"an end is not sure":          {"", "", healing, [2]bool{false, false}},
		"the database":                {"59 min", "", `{}`, [2]bool{true, false}},
		"the database, healed":        {"61 min", "", `{}`, [2]bool{false, false}},
		"the database, being healed":  {"2 days", "3 days", healing, [2]bool{true, false}},
		"the broker":                  {"", "59 min", `{}`, [2]bool{false, true}},
		"the broker, healed":          {"", "61 min", `{}`, [2]bool{false, false}},
		"the broker, being healed":    {"3 days", "2 days", healing, [2]bool{false, true}},
		"one after the other":         {"50 min", "20 min", `{}`, [2]bool{true, true}},
		"the broker, and now another": {"5 min", "2 days", healing, [2]bool{true, false}},
	} {
		execSQL(t, pool, `update outbox_cursor set ends = nullif($3::jsonb, 'null'),
			database_back_at = now() - nullif($1, '')::interval, broker_back_at = now() - nullif($2, '')::interval`,
			row.database, row.broker, row.ends)
		s := statusOf(t, pool)
		require.Equal(t, row.want, [2]bool{s.DatabaseWentBack, s.BrokerWentBack}, name)
		require.Equal(t, row.database != "", s.DatabaseBackAt != nil, name)
		require.Equal(t, strings.Contains(row.ends, "from"), s.Healing == 1, name)
	}
}

const loseSQL = `
insert into outbox_lost (topic, partition, "offset", event_id, event_type, key, version, headers, payload, appended_at)
values ($1, $2, $3, $4, 'renamed', $5, $6, '{"ce_id": "x"}', $7, '2026-01-02T03:04:05Z')`

func readLost(t *testing.T, pool *pgxpool.Pool, q LostQuery) (places []string, pages []LostPage) {
	t.Helper()
	for {
		page, err := ReadLost(t.Context(), pool, q)
		require.NoError(t, err)
		for _, e := range page.Items {
			places = append(places, fmt.Sprintf("%s/%d@%d %s", e.Topic, e.Partition, e.Offset, e.EventID))
		}
		pages = append(pages, page)
		if q.After = page.Next; q.After == "" {
			return places, pages
		}
	}
}

func TestLostEventsAreListedInTheOrderOfTheLog(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	none, err := ReadLost(t.Context(), pool, LostQuery{Limit: 9})
	require.NoError(t, err)
	require.Equal(t, LostPage{Items: []LostEvent{}}, none)

	execSQL(t, pool, loseSQL, "users", 1, 0, "e4", "k", 2, []byte("four"))
	execSQL(t, pool, loseSQL, "users", 0, 10, "e3", "k", 1, []byte("three"))
	execSQL(t, pool, loseSQL, "users", 0, 9, "a/b", "other", 1, []byte("two"))
	execSQL(t, pool, loseSQL, "users", 0, 9, "e1", "other", 2, []byte("at an offset that was given twice"))
	execSQL(t, pool, loseSQL, "mails", 7, 8, "e0", "k", 1, []byte("zero"))
	all := []string{"mails/7@8 e0", "users/0@9 a/b", "users/0@9 e1", "users/0@10 e3", "users/1@0 e4"}
	for limit := range 7 {
		places, pages := readLost(t, pool, LostQuery{Limit: limit})
		require.Equal(t, all, places, limit)
		require.Len(t, pages, (len(all)-1)/max(1, limit)+1, limit)
	}
	places, _ := readLost(t, pool, LostQuery{Topic: "users", Key: "k", Limit: 1})
	require.Equal(t, all[3:], places)
	require.EqualValues(t, len(all), statusOf(t, pool).Lost)

	page, err := ReadLost(t.Context(), pool, LostQuery{Topic: "mails", Payload: true})
	require.NoError(t, err)
	e := page.Items[0]
	require.WithinDuration(t, time.Now(), e.FoundAt, time.Minute)
	require.Equal(t, LostEvent{
		Topic: "mails", Partition: 7, Offset: 8, EventID: "e0", Type: "renamed", Key: "k", Version: 1,
		AppendedAt: e.AppendedAt, FoundAt: e.FoundAt, Headers: []byte(`{"ce_id": "x"}`), Bytes: 4, Payload: []byte("zero"),
	}, e)
	require.Equal(t, "2026-01-02T03:04:05Z", e.AppendedAt.UTC().Format(time.RFC3339))
	page, err = ReadLost(t.Context(), pool, LostQuery{Topic: "mails"})
	require.NoError(t, err)
	require.Nil(t, page.Items[0].Payload, "only if asked for")

	for _, after := range []string{
		"users", "users/0/9/1", "users/x/9/1/e", "users/0/99999999999999999999/1/e", "users/0/9/x/e",
	} {
		_, err = ReadLost(t.Context(), pool, LostQuery{After: after})
		require.ErrorIs(t, err, ErrAfter, after)
	}
}

func TestAPageOfLostEventsIsBounded(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	for n := range 4 {
		execSQL(t, pool, loseSQL, "users", 0, n, fmt.Sprint(n), "k", 1, make([]byte, 3<<20))
	}
	places, pages := readLost(t, pool, LostQuery{Limit: 10, Payload: true})
	require.Len(t, places, 4)
	require.Len(t, pages, 2)
	require.Len(t, pages[0].Items, 3)
	_, pages = readLost(t, pool, LostQuery{Limit: 10})
	require.Len(t, pages, 1)
}
