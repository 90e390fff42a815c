package inbox_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/testkit"
)

const ignoredType = "com.example.nobodys.v1"

func heedsOne(cfg *inbox.Config) { cfg.Handlers = inboxtest.Only(testType) }

// What comes in another order has its effects in order all the same, by itself, in batches of any size.
func TestEventsThatComeOutOfOrder(t *testing.T) {
	t.Parallel()
	const most, giant = math.MaxInt64, "9223372036854775807"
	for name, s := range map[string]struct {
		come      []int64 // versions; negative: of a type without a handler
		applied   []int64
		watermark int
		waiting   []string
	}{
		"in order":                  {[]int64{1, 2, 3}, []int64{1, 2, 3}, 3, nil},
		"one too late":              {[]int64{1, 3, 2}, []int64{1, 2, 3}, 3, nil},
		"the first one late":        {[]int64{3, 1, 2}, []int64{1, 2, 3}, 3, nil},
		"backwards":                 {[]int64{3, 2, 1}, []int64{1, 2, 3}, 3, nil},
		"two gaps":                  {[]int64{1, 3, 4, 6, 5, 2}, []int64{1, 2, 3, 4, 5, 6}, 6, nil},
		"a first one that is not":   {[]int64{2}, nil, 0, []string{"version_gap 2"}},
		"one that never comes":      {[]int64{1, 3, 4}, []int64{1}, 1, []string{"version_gap 3", "parked_behind 4"}},
		"a giant":                   {[]int64{1, most, 2, 3}, []int64{1, 2, 3}, 3, []string{"version_jump " + giant}},
		"a giant first":             {[]int64{most, 1, 2}, []int64{1, 2}, 2, []string{"version_jump " + giant}},
		"ignored ones count":        {[]int64{1, -2, 3, -4, -5, 6}, []int64{1, 3, 6}, 6, nil},
		"ignored ones out of order": {[]int64{1, -3, 4, 2, 5}, []int64{1, 2, 4, 5}, 5, nil},
		"an ignored one too late":   {[]int64{1, 3, -2, 4}, []int64{1, 3, 4}, 4, nil},
		"ignored ones alone":        {[]int64{-1, -2, 3}, []int64{3}, 3, nil},
		"an ignored giant":          {[]int64{1, -most, 2, 3}, []int64{1, 2, 3}, 3, nil},
		"behind a gap behind a gap": {[]int64{1, 3, 5, 2}, []int64{1, 2, 3}, 3, []string{"version_gap 5"}},
		"twice the same version":    {[]int64{1, 3, 3, 2}, []int64{1, 2, 3}, 3, nil},
		"no version": {
			[]int64{1, 0, 2}, []int64{1}, 1, []string{"missing_version 0", "parked_behind 2"},
		},
		"a key without versions":          {[]int64{0, 0}, []int64{0, 0}, 0, nil},
		"versions from now on":            {[]int64{0, 1, 2}, []int64{0, 1, 2}, 2, nil},
		"an ignored one behind an absent": {[]int64{-2, 3}, nil, 0, []string{"version_gap 3"}},
	} {
		for _, batch := range []int{1, 2, 200} {
			t.Run(fmt.Sprint(name, " ", batch), func(t *testing.T) {
				t.Parallel()
				c := newClinic(t, batch, heedsOne)
				events, of := make([]cloudevent.Event, len(s.come)), make(map[string]int64)
				for i, version := range s.come {
					events[i] = v("a", max(version, -version))
					if version < 0 {
						events[i].Type = ignoredType
					}
					of[events[i].ID] = version
				}
				c.deliver(t, events...)
				var applied []int64
				for _, id := range c.List(t, `select event_id from ledger order by n`) {
					applied = append(applied, of[id])
				}
				require.Equal(t, s.applied, applied)
				require.Equal(t, s.watermark, c.Count(t, `select coalesce(max(version), 0) from inbox_watermark`))
				require.Equal(t, append([]string{}, s.waiting...), c.List(t,
					`select code || ' ' || version from dead_letter where state = 'waiting' order by version`))
				require.Zero(t, c.Count(t, `select count(*) from inbox_passed p join inbox_watermark w using (consumer, key)
					where p.version <= w.version`), "what is passed is forgotten")

				c.at = 0
				for _, outcome := range c.deliver(t, events...) {
					require.Contains(t, []inbox.Outcome{inbox.Duplicate, inbox.Ignored}, outcome, "and all of it again")
				}
			})
		}
	}
}

// Handlers of whole state skip what is missing, but not to where no later event could follow.
func TestAJumpParksUnderEveryGapPolicy(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 200, func(cfg *inbox.Config) { cfg.OnGap, cfg.MaxJump = inbox.GapAllow, 10 })
	require.Equal(t, []inbox.Outcome{inbox.Applied, inbox.Stale, inbox.Gap, inbox.Applied, inbox.Parked},
		c.deliver(t, v("a", 10), v("a", 3), v("a", 21), v("a", 11), v("a", 22)))
	require.Equal(t, []string{"version_jump", "parked_behind"}, c.List(t, `select code from dead_letter order by version`))
	require.Equal(t, []string{"applied", "stale", "gap", "applied", "parked"},
		c.List(t, `select metadata ->> 'outcome' from inbox order by (metadata ->> 'offset')::int`))
}

// A process died between the event that closed the gap and what waited for it; a gap was closed by something else: the
// rounds find them.
func TestTheRoundsResumeWhatIsLeft(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 200, nil)
	handler := c.again.Handler
	c.again.Handler = nil // nothing is taken up
	c.open(t)
	a := []cloudevent.Event{v("a", 1), v("a", 3), v("a", 4), v("a", 2)}
	open := []cloudevent.Event{v("b", 1), v("b", 3)}
	unreadable := v("c", 1)
	unreadable.Source = ""
	discarded := v("c", 2)
	c.deliver(t, append(append(a, open...), unreadable, discarded)...)
	require.Equal(t, 4, c.Count(t, `select count(*) from dead_letter where class = 'parked'`))
	_, err := c.Pool.Exec(t.Context(), `update dead_letter set state = 'discarded' where code = 'missing_source'`)
	require.NoError(t, err)

	c.again.Handler = handler
	c.open(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.taker.ResumeGaps(ctx) }()
	testkit.Until(t, func() bool {
		return c.Count(t, `select count(*) from dead_letter where state = 'waiting'`) == 1
	})
	stop()
	require.NoError(t, <-ended)
	require.ElementsMatch(t, ids(a[0], a[3], a[1], a[2], open[0], discarded),
		c.List(t, `select event_id from ledger order by n`))
	require.Equal(t, []string{"version_gap 3"}, c.List(t,
		`select code || ' ' || version from dead_letter where state = 'waiting'`), "whose predecessor has not come")
	require.Equal(t, 3, c.Count(t, `select count(*) from operator_action where operator = 'inbox' and verb = 'replay'`))
}

// A partition waits for one gap, and lets the others park: thousands of them would stop it.
func TestAPartitionWaitsForFewGaps(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 200, func(cfg *inbox.Config) { cfg.OnGap, cfg.GapWait = inbox.GapWait, 3*time.Second })
	events := make([]cloudevent.Event, 100)
	for i := range events {
		events[i] = v(fmt.Sprint("key-", i), 2)
	}
	began := time.Now()
	for _, outcome := range c.deliver(t, events...) {
		require.Equal(t, inbox.Gap, outcome)
	}
	require.Less(t, time.Since(began), 25*time.Second, "less than nine waits, for a hundred gaps")
}

// The inbox counts an attempt of its own before it begins, so that an event that ends the process each time is given
// up in the end, and one that broke off for another reason is not.
func TestWhatIsResumedAndEndsTheProcess(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 200, func(cfg *inbox.Config) { cfg.MaxAttempts = 3 })
	var counted []int
	handle := c.again.Handler
	c.again.Handler = func(m *message.Message) ([]*message.Message, error) {
		counted = append(counted, c.Count(t, `select attempts from dead_letter where version = 3`))
		return handle(m)
	}
	c.open(t)
	c.deliver(t, v("a", 1), v("a", 3), v("b", 1), v("b", 3))
	c.Exec(t, `update dead_letter set attempts = 4 where key = 'b'`) // three processes died of it
	c.deliver(t, v("b", 2))
	require.Empty(t, counted)
	require.Equal(t, []string{"permanent process_died"},
		c.List(t, `select class || ' ' || code from dead_letter where key = 'b'`))
	c.Exec(t, `delete from dead_letter where key = 'b'`)
	c.deliver(t, v("a", 2))
	require.Equal(t, []int{2}, counted, "committed before the handler runs")
}
