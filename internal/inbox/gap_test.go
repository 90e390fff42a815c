package inbox_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

const ignoredType = "com.example.unhandled.v1"

func acceptsOne(cfg *inbox.Config) { cfg.Accepts = acceptsTestType }

func TestEventsThatComeOutOfOrder(t *testing.T) {
	t.Parallel()
	const most, giant = math.MaxInt64, "9223372036854775807"
	for name, s := range map[string]struct {
		come    []int64 // versions; negative: of a type without a handler
		applied []int64
		version int // of the key
		waiting []string
	}{
		"in order":                     {[]int64{1, 2, 3}, []int64{1, 2, 3}, 3, nil},
		"one too late":                 {[]int64{1, 3, 2}, []int64{1, 2, 3}, 3, nil},
		"the first one late":           {[]int64{3, 1, 2}, []int64{1, 2, 3}, 3, nil},
		"backwards":                    {[]int64{3, 2, 1}, []int64{1, 2, 3}, 3, nil},
		"two gaps":                     {[]int64{1, 3, 4, 6, 5, 2}, []int64{1, 2, 3, 4, 5, 6}, 6, nil},
		"the first one is missing":     {[]int64{2}, nil, 0, []string{"version_gap 2"}},
		"one never comes":              {[]int64{1, 3, 4}, []int64{1}, 1, []string{"version_gap 3", "parked_behind 4"}},
		"a giant":                      {[]int64{1, most, 2, 3}, []int64{1, 2, 3}, 3, []string{"version_gap " + giant}},
		"a giant first":                {[]int64{most, 1, 2}, []int64{1, 2}, 2, []string{"version_gap " + giant}},
		"ignored ones count":           {[]int64{1, -2, 3, -4, -5, 6}, []int64{1, 3, 6}, 6, nil},
		"ignored ones out of order":    {[]int64{1, -3, 4, 2, 5}, []int64{1, 2, 4, 5}, 5, nil},
		"an ignored one too late":      {[]int64{1, 3, -2, 4}, []int64{1, 3, 4}, 4, nil},
		"ignored ones alone":           {[]int64{-1, -2, 3}, []int64{3}, 3, nil},
		"an ignored giant":             {[]int64{1, -most, 2, 3}, []int64{1, 2, 3}, 3, []string{"version_gap " + giant}},
		"a gap after a gap":            {[]int64{1, 3, 5, 2}, []int64{1, 2, 3}, 3, []string{"parked_behind 5"}},
		"the same version twice":       {[]int64{1, 3, 3, 2}, []int64{1, 2, 3}, 3, nil},
		"no version":                   {[]int64{1, 0, 2}, []int64{1}, 1, []string{"missing_version 0", "parked_behind 2"}},
		"no version after two":         {[]int64{1, 2, 0}, []int64{1, 2}, 2, []string{"missing_version 0"}},
		"a key without versions":       {[]int64{0, 0}, []int64{0, 0}, 0, nil},
		"versions from now on":         {[]int64{0, 1, 2}, []int64{0, 1, 2}, 2, nil},
		"an ignored one after nothing": {[]int64{-2, 3}, nil, 0, []string{"version_gap 2", "parked_behind 3"}},
	} {
		for _, batch := range []int{1, 2, 200} {
			t.Run(fmt.Sprint(name, " ", batch), func(t *testing.T) {
				t.Parallel()
				c := newClinic(t, batch, acceptsOne)
				events, of := make([]event.Event, len(s.come)), make(map[string]int64)
				for i, version := range s.come {
					events[i] = v("a", max(version, -version))
					if version < 0 {
						events[i].Type = ignoredType
					}
					of[events[i].ID] = version
				}
				c.deliver(t, events...)
				c.resume(t)
				var applied []int64
				for _, id := range c.List(t, `select event_id from ledger order by n`) {
					applied = append(applied, of[id])
				}
				require.Equal(t, s.applied, applied)
				require.Equal(t, s.version, c.Count(t, `select coalesce(max(version), 0) from inbox_key`))
				require.Equal(t, append([]string{}, s.waiting...), c.waiting(t))

				c.at = 0
				for _, outcome := range c.deliver(t, events...) {
					require.NotContains(t, []inbox.Outcome{inbox.Applied, inbox.Conflict, inbox.Dead}, outcome, "and all of it again")
				}
				require.Equal(t, append([]string{}, s.waiting...), c.waiting(t))
			})
		}
	}
}

func TestADiscardedEventThatIsNotTheNext(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 200, nil)
	come := []event.Event{v("a", 1), v("a", 3), v("a", 4), v("a", 5), v("a", 2)}
	c.deliver(t, come[:4]...)
	c.discard(t, deadletter.Filter{Code: inbox.CodeGap})
	c.resume(t)
	require.Equal(t, []string{"parked_behind 4", "parked_behind 5"}, c.waiting(t), "another version is missing")
	c.deliver(t, come[4])
	c.resume(t)
	c.requireEffects(t, come[0], come[4], come[2], come[3])
	c.requireNothingWaits(t)
}
