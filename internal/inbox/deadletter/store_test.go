package deadletter_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/inbox/deadletter"
)

var by = audit.Change{By: "ana", Reason: "test"}

func numbered(n int) []deadletter.Letter {
	letters := make([]deadletter.Letter, n)
	for i := range letters {
		letters[i] = letter(i)
	}
	return letters
}

func code(err error) string {
	if refused, is := errors.AsType[*deadletter.Error](err); is {
		return refused.Code
	}
	return fmt.Sprint(err)
}

func TestListing(t *testing.T) {
	t.Parallel()
	letters := numbered(5)
	letters[4].Code, letters[4].Type = "empty_value", "other"
	letters[2].Key, letters[2].Error = []byte("\xffk"), strings.Repeat("x", 1500)
	s, pool := open(t, letters...)
	all, err := s.Summaries(t.Context(), deadletter.Filter{})
	require.NoError(t, err)
	require.Len(t, all, 5)
	for i, l := range read(t, pool, "true") {
		want := letters[i]
		want.ID, want.State, want.FailedAt = l.ID, deadletter.Waiting, l.FailedAt
		require.Equal(t, want, l)
		want.Headers, want.Payload, want.Error = nil, nil, want.Error[:min(len(l.Error), 1000)]
		require.Equal(t, want, all[i])
	}
	for name, f := range map[string]deadletter.Filter{
		"page":  {Limit: 1, After: all[2].ID},
		"id":    {IDs: []int64{all[3].ID}},
		"event": {EventID: "event-3"},
		"error": {Error: "boom 3"},
		"all":   {Consumer: "test", Key: "k0", Code: "handler_failed", State: deadletter.Waiting, After: all[0].ID},
	} {
		got, err := s.Summaries(t.Context(), f)
		require.NoError(t, err, name)
		require.Equal(t, all[3:4], got, name)
	}
	for _, f := range []deadletter.Filter{
		{Consumer: "x"}, {State: deadletter.Replayed}, {Until: all[0].FailedAt}, {Since: time.Now().Add(time.Hour)},
	} {
		none, err := s.Summaries(t.Context(), f)
		require.NoError(t, err)
		require.Empty(t, none)
	}
	_, err = s.Summaries(t.Context(), deadletter.Filter{State: "lost"})
	require.Equal(t, deadletter.CodeInvalidFilter, code(err))
}

func TestGroups(t *testing.T) {
	t.Parallel()
	letters := numbered(5)
	letters[4].Code, letters[4].Type = "empty_value", "other"
	s, _ := open(t, letters...)
	groups, err := s.Groups(t.Context(), deadletter.Filter{Consumer: "test"})
	require.NoError(t, err)
	require.Len(t, groups, 2)
	require.Equal(t, []any{int64(4), int64(3), "Boom 3", int64(4)},
		[]any{groups[0].Count, groups[0].Keys, groups[0].Error, groups[0].Example})
	require.Equal(t, "other", groups[1].Type)
	_, err = s.Groups(t.Context(), deadletter.Filter{Limit: -1})
	require.Equal(t, deadletter.CodeInvalidFilter, code(err))
}

func TestOneDeadLetter(t *testing.T) {
	t.Parallel()
	l := letter(1)
	l.Error = strings.Repeat("x", 1500)
	s, _ := open(t, l)
	shown, history, err := s.Get(t.Context(), 1, false)
	require.NoError(t, err)
	require.Empty(t, history)
	require.Equal(t, l.Error, shown.Error)
	require.Nil(t, shown.Headers)
	require.Nil(t, shown.Payload)

	_, err = s.Edit(t.Context(), 1, deadletter.Edit{Payload: []byte("mended")}, by)
	require.NoError(t, err)
	shown, history, err = s.Get(t.Context(), 1, true)
	require.NoError(t, err)
	require.Len(t, history, 1)
	require.Equal(t, []string{string(l.Payload), "mended", "ana"},
		[]string{string(shown.Payload), string(shown.EditedPayload), shown.EditedBy})
	require.Equal(t, l.Headers, shown.Headers)
	_, _, err = s.Get(t.Context(), 99, false)
	require.Equal(t, deadletter.CodeNotFound, code(err))
}

func storeMany(t *testing.T, pool *pgxpool.Pool, consumer string, n int) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `insert into dead_letter (consumer, event_id, event_type, key, headers, payload,
		topic, partition, record_offset, class, code, error, attempts, first_failed_at, holds)
		select $1, 'e-' || n, 't', convert_to('k-' || n, 'UTF8'), '[]', '', 't', 0, n, 'unknown', 'c', 'x', 1, now(), true
		from generate_series(1, $2) n`, consumer, n)
	require.NoError(t, err)
}

func TestManyDeadLetters(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	storeMany(t, pool, "test", 2_000)
	page, err := s.Summaries(t.Context(), deadletter.Filter{After: 1_400, Limit: 500})
	require.NoError(t, err)
	require.Equal(t, []int64{1_401, 1_900}, []int64{page[0].ID, page[499].ID})
	var progress []int64
	change := audit.Change{By: "ana", Deed: "d", Progress: func(changed, total int64) {
		require.EqualValues(t, 1200, total)
		progress = append(progress, changed)
	}}
	result, err := s.Discard(t.Context(), deadletter.Filter{Consumer: "test", Limit: 1200}, change)
	require.NoError(t, err)
	require.Equal(t, []int64{500, 1000, 1200}, progress, "a chunk is a transaction, and is counted once it is through")
	require.Equal(t, audit.Result{Count: 1200}, result)
	deeds, err := audit.Find(t.Context(), pool, audit.Filter{Limit: 10})
	require.NoError(t, err)
	require.Len(t, deeds, 1, "one deed is one action")
	require.Equal(t, []any{int64(1200), ""}, []any{deeds[0].Count, deeds[0].Subject})
	for id, want := range map[int64]int{1200: 1, 1201: 0} {
		_, history, err := s.Get(t.Context(), id, false)
		require.NoError(t, err)
		require.Len(t, history, want, "what was done to %d is found by its id", id)
	}
}

func TestADeadLetterOfAListInJSON(t *testing.T) {
	t.Parallel()
	l := letter(1)
	l.Key = []byte("\xff\xfek")
	s, _ := open(t, l)
	listed, err := s.Summaries(t.Context(), deadletter.Filter{})
	require.NoError(t, err)
	shown, err := json.Marshal(listed[0])
	require.NoError(t, err)
	members := map[string]any{}
	require.NoError(t, json.Unmarshal(shown, &members))
	require.Equal(t, "\ufffdk", members["key"])
	for _, absent := range []string{
		"payload", "headers", "edited_payload", "edited_by", "edited_at", "outcome", "settled_at",
	} {
		require.NotContains(t, members, absent)
	}
	var read deadletter.Letter
	require.NoError(t, json.Unmarshal(shown, &read))
	require.Equal(t, deadletter.Key("\ufffdk"), read.Key)
}

func measured(t *testing.T, pool *pgxpool.Pool) map[string]float64 {
	t.Helper()
	metrics, err := deadletter.Measure(t.Context(), pool, []string{"test", "idle"})
	require.NoError(t, err)
	values := map[string]float64{}
	for _, m := range metrics {
		var read dto.Metric
		require.NoError(t, m.Write(&read))
		name := "waiting"
		if strings.Contains(m.Desc().String(), "oldest_seconds") {
			name = "oldest"
		}
		for _, label := range read.GetLabel() {
			name += " " + label.GetValue()
		}
		values[name] = read.GetGauge().GetValue()
	}
	return values
}

func TestWaitingLettersAreCountedByState(t *testing.T) {
	t.Parallel()
	old, parked, other := letter(1), letter(2), letter(3)
	old.FirstFailedAt = time.Now().Add(-time.Hour)
	parked.Class, parked.FirstFailedAt = deadletter.ClassParked, time.Now()
	other.Consumer = "another"
	store, pool := open(t, old, parked, other)
	got := measured(t, pool)
	require.InDelta(t, 3600, got["oldest test dead"], 60)
	require.Less(t, got["oldest test parked"], 60.0)
	delete(got, "oldest test dead")
	delete(got, "oldest test parked")
	require.Equal(t, map[string]float64{
		"waiting test dead": 1, "waiting test parked": 1,
		"waiting idle dead": 0, "waiting idle parked": 0, "oldest idle dead": 0, "oldest idle parked": 0,
	}, got, "a consumer without dead letters has 0, and is not absent")

	_, err := store.Discard(t.Context(), deadletter.Filter{IDs: []int64{1}}, by)
	require.NoError(t, err)
	got = measured(t, pool)
	require.Zero(t, got["waiting test dead"])
	require.Zero(t, got["oldest test dead"])
}
