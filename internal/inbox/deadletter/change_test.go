package deadletter_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/test/testkit"
)

func TestEditsAddUp(t *testing.T) {
	t.Parallel()
	came, id := letter(1), int64(1)
	s, _ := open(t, came)
	header := func(name, value string) deadletter.Header { return deadletter.Header{Name: name, Value: []byte(value)} }
	var read deadletter.Letter
	edited := func(e deadletter.Edit, c audit.Change) deadletter.Letter {
		e.EditedAt = read.EditedAt
		l, err := s.Edit(t.Context(), id, e, c)
		require.NoError(t, err)
		read = l
		return l
	}
	require.False(t, edited(deadletter.Edit{Payload: []byte("p")}, audit.Change{By: "ana", DryRun: true}).IsEdited())

	set := edited(deadletter.Edit{Set: []deadletter.Header{header("x", "1"), header("y", "2")}}, by)
	require.Equal(t, []deadletter.Header{header("x", "1"), header("y", "2")}, set.EditedHeaders, "one for both")
	require.Equal(t, came.Payload, set.EditedPayload)
	require.Equal(t, "ana", set.EditedBy)
	both := edited(deadletter.Edit{Payload: []byte("p")}, audit.Change{By: "ben"})
	require.Equal(t, set.EditedHeaders, both.EditedHeaders, "the headers of the edit before")
	require.Equal(t, "ben", both.EditedBy)
	again := edited(deadletter.Edit{Set: []deadletter.Header{header("x", "3")}}, by)
	require.Equal(t, []deadletter.Header{header("y", "2"), header("x", "3")}, again.EditedHeaders)
	require.Equal(t, "p", string(again.EditedPayload))

	l, history, err := s.Get(t.Context(), id, true)
	require.NoError(t, err)
	require.Equal(t, came.Payload, l.Payload, "what came stays")
	require.Len(t, history, 3, "a dry run leaves no trace")
	for want, e := range map[string]deadletter.Edit{
		deadletter.CodeNothingToEdit:  {},
		deadletter.CodeInvalidHeaders: {Set: []deadletter.Header{header("", "x")}},
	} {
		_, err := s.Edit(t.Context(), id, e, by)
		require.Equal(t, want, code(err))
	}
	_, err = s.Edit(t.Context(), id+1, deadletter.Edit{Payload: []byte{}}, by)
	require.Equal(t, deadletter.CodeNotFound, code(err))
	_, err = s.Edit(t.Context(), id, deadletter.Edit{Payload: []byte{}, EditedAt: l.EditedAt}, audit.Change{})
	require.ErrorIs(t, err, audit.ErrIncomplete)
}

func TestTheLaterOfTwoEditsIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := open(t, letter(1))
	first, err := s.Edit(t.Context(), 1, deadletter.Edit{Payload: []byte("ana's")}, by)
	require.NoError(t, err)
	second := deadletter.Edit{Payload: []byte("ben's")}
	for _, read := range []time.Time{{}, first.EditedAt.Add(-time.Microsecond)} {
		second.EditedAt = read
		_, err = s.Edit(t.Context(), 1, second, audit.Change{By: "ben"})
		require.Equal(t, deadletter.CodeEditedSince, code(err))
		require.ErrorContains(t, err, "was edited by ana: ")
		require.ErrorContains(t, err, first.EditedAt.Format(time.RFC3339Nano))
	}
	l, history, err := s.Get(t.Context(), 1, true)
	require.NoError(t, err)
	require.Equal(t, "ana's", string(l.EditedPayload))
	require.Len(t, history, 1)
	second.EditedAt = first.EditedAt
	_, err = s.Edit(t.Context(), 1, second, audit.Change{By: "ben"})
	require.NoError(t, err)
}

func TestDiscarding(t *testing.T) {
	t.Parallel()
	s, _ := open(t, numbered(5)...)
	f := deadletter.Filter{Key: "k0"}
	dry, err := s.Discard(t.Context(), f, audit.Change{By: "ana", DryRun: true})
	require.NoError(t, err)
	require.Equal(t, audit.Result{DryRun: true, Count: 2}, dry)
	done, err := s.Discard(t.Context(), f, by)
	require.NoError(t, err)
	require.Equal(t, audit.Result{Count: 2}, done)
	again, err := s.Discard(t.Context(), f, by)
	require.NoError(t, err)
	require.Equal(t, audit.Result{}, again)
	discarded, err := s.Summaries(t.Context(), deadletter.Filter{State: deadletter.Discarded})
	require.NoError(t, err)
	require.Len(t, discarded, 2)
	_, history, err := s.Get(t.Context(), discarded[0].ID, false)
	require.NoError(t, err)
	require.Len(t, history, 1)
	require.Equal(t, []string{"ana", "discard", "test", "waiting", "discarded"},
		[]string{history[0].By, history[0].Verb, history[0].Reason, history[0].Before, history[0].After})
	_, err = s.Edit(t.Context(), discarded[0].ID, deadletter.Edit{Payload: []byte{}}, by)
	require.Equal(t, deadletter.CodeNotWaiting, code(err))

	_, err = s.Discard(t.Context(), deadletter.Filter{}, by)
	require.Equal(t, deadletter.CodeMissingFilter, code(err))
	_, err = s.Discard(t.Context(), deadletter.Filter{Consumer: "test"}, audit.Change{})
	require.ErrorIs(t, err, audit.ErrIncomplete)
	one, err := s.Discard(t.Context(), deadletter.Filter{Consumer: "test", Limit: 1}, by)
	require.NoError(t, err)
	require.EqualValues(t, 1, one.Count)
}

func TestADiscardReleasesItsKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version  int64
		waiting  []int64
		discard  []int64
		want     int64
		wantFrom *int64
	}{
		"the next":              {1, []int64{2}, []int64{1}, 2, nil},
		"the next of several":   {1, []int64{2, 3, 4}, []int64{1}, 2, new(int64(3))},
		"several in order":      {1, []int64{4, 3, 2}, []int64{1, 2, 3}, 4, nil},
		"not the next":          {1, []int64{2, 3}, []int64{2}, 1, new(int64(2))},
		"after a gap":           {1, []int64{3, 4}, []int64{1}, 1, new(int64(4))},
		"without a version":     {1, []int64{0, 2}, []int64{1}, 1, new(int64(2))},
		"what was there before": {5, []int64{2, 3}, []int64{1, 2}, 5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			letters := []deadletter.Letter{}
			for i, version := range c.waiting {
				l := letter(i)
				l.Key, l.Version = []byte("a"), version
				letters = append(letters, l)
			}
			s, pool := open(t, letters...)
			for _, key := range []string{"a", "b"} {
				_, err := pool.Exec(t.Context(), `insert into inbox_key values ('test', $1, $2, $3)`,
					key, c.version, slices.Min(c.waiting))
				require.NoError(t, err)
			}
			_, err := s.Discard(t.Context(), deadletter.Filter{IDs: c.discard}, by)
			require.NoError(t, err)
			var version int64
			var from *int64
			state := `select version, parked_from from inbox_key where key = $1`
			require.NoError(t, pool.QueryRow(t.Context(), state, "a").Scan(&version, &from))
			require.Equal(t, c.want, version)
			require.Equal(t, c.wantFrom, from)
			require.NoError(t, pool.QueryRow(t.Context(), state, "b").Scan(&version, &from))
			require.Equal(t, []int64{c.version, slices.Min(c.waiting)}, []int64{version, *from}, "another key")
		})
	}
}

func TestADiscardOfADeadLetterThatHoldsNoKey(t *testing.T) {
	t.Parallel()
	l := letter(2)
	l.Key, l.Holds = []byte("a"), false
	s, pool := open(t, l)
	_, err := pool.Exec(t.Context(), `insert into inbox_key values ('test', 'a', 1, 5)`)
	require.NoError(t, err)
	_, err = s.Discard(t.Context(), deadletter.Filter{IDs: []int64{1}}, by)
	require.NoError(t, err)
	var untouched bool
	err = pool.QueryRow(t.Context(), `select (version, parked_from) = (1, 5) from inbox_key`).Scan(&untouched)
	require.NoError(t, err)
	require.True(t, untouched)
}

func TestTwoDiscardsAtOnce(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	storeMany(t, pool, "test", 1500)
	_, err := pool.Exec(t.Context(), `insert into inbox_key
		select 'test', 'k-' || n, 0, 0 from generate_series(1, 1500) n`)
	require.NoError(t, err)
	var both errgroup.Group
	counts := make([]int64, 2)
	for i := range counts {
		both.Go(func() error {
			result, err := s.Discard(t.Context(), deadletter.Filter{Consumer: "test"}, by)
			counts[i] = result.Count
			return err
		})
	}
	require.NoError(t, both.Wait())
	require.LessOrEqual(t, counts[0]+counts[1], int64(1500))
	for range 3 {
		_, err := s.Discard(t.Context(), deadletter.Filter{Consumer: "test"}, by)
		require.NoError(t, err)
	}
	for query, want := range map[string]int{
		`select count(*) from dead_letter where state = 'discarded'`:   1500,
		`select count(*) from operator_action`:                         1500,
		`select count(distinct subject) from operator_action`:          1500,
		`select count(*) from inbox_key where parked_from is not null`: 0,
	} {
		var n int
		require.NoError(t, pool.QueryRow(t.Context(), query).Scan(&n))
		require.Equal(t, want, n, query)
	}
}

func TestADiscardContinuesBehindAnother(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	storeMany(t, pool, "test", 1200)
	_, err := pool.Exec(t.Context(), `insert into inbox_key
		select 'test', 'k-' || n, 0, 0 from generate_series(1, 1200) n`)
	require.NoError(t, err)
	other, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), `update dead_letter set state = 'discarded', settled_at = now() where id <= 500`)
	require.NoError(t, err)
	var discard errgroup.Group
	var result audit.Result
	discard.Go(func() (err error) {
		result, err = s.Discard(t.Context(), deadletter.Filter{Consumer: "test"}, by)
		return err
	})
	testkit.Until(t, func() bool {
		var waits bool
		err := pool.QueryRow(t.Context(), `select exists (select from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waits)
		return err == nil && waits
	})
	require.NoError(t, other.Commit(t.Context()))
	require.NoError(t, discard.Wait())
	require.EqualValues(t, 700, result.Count)
}

func TestWhatCannotBeDiscarded(t *testing.T) {
	t.Parallel()
	s, _ := open(t, numbered(3)...)
	_, err := s.Discard(t.Context(), deadletter.Filter{Key: "k0", State: deadletter.Replayed}, by)
	require.Equal(t, deadletter.CodeNotWaiting, code(err))
	_, err = s.Discard(t.Context(), deadletter.Filter{Key: "k0", After: -1}, by)
	require.Equal(t, deadletter.CodeInvalidFilter, code(err))
	for name, f := range map[string]deadletter.Filter{
		"limit": {Limit: 1}, "state": {State: deadletter.Waiting}, "page": {After: 1},
	} {
		_, err := s.Discard(t.Context(), f, by)
		require.Equal(t, deadletter.CodeMissingFilter, code(err), "%s: that is still everything", name)
	}
	for name, f := range map[string]deadletter.Filter{
		"key": {Key: "none"}, "id": {IDs: []int64{99}}, "consumer": {Consumer: "none"}, "type": {Type: "none"},
		"event": {EventID: "none"}, "code": {Code: "none"}, "error": {Error: "none"},
		"from": {Since: time.Now().Add(time.Hour)}, "to": {Until: time.Unix(0, 0)},
	} {
		result, err := s.Discard(t.Context(), f, by)
		require.NoError(t, err, name)
		require.Equal(t, audit.Result{}, result, name)
	}
}
