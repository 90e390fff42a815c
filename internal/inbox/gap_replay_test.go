package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/replay"
)

// Each way on for a key whose predecessor will never come.
func TestTheWayOnFromAGap(t *testing.T) {
	t.Parallel()
	accept := func(o *replay.Options) { o.AcceptGap = true }
	for name, s := range map[string]struct {
		come    []int64
		options []func(*replay.Options)
		want    replay.Report
		refused string
		left    []string
	}{
		"refused as it is": {
			[]int64{1, 3, 4},
			nil,
			replay.Report{Matched: 1, Refused: 1},
			inbox.CodeGap,
			[]string{"version_gap 3", "parked_behind 4"},
		},
		"accepted": {
			[]int64{1, 3, 4, 7},
			[]func(*replay.Options){accept},
			replay.Report{Matched: 3, Applied: 3},
			"", nil,
		},
		"accepted where the key begins in its middle": {
			[]int64{700, 701},
			[]func(*replay.Options){accept},
			replay.Report{Matched: 2, Applied: 2},
			"", nil,
		},
		"a jump takes more": {
			[]int64{1, 5000},
			[]func(*replay.Options){accept},
			replay.Report{Matched: 1, Refused: 1},
			inbox.CodeJump,
			[]string{"version_jump 5000"},
		},
		"a jump by force": {
			[]int64{1, 5000},
			[]func(*replay.Options){accept, forced},
			replay.Report{Matched: 1, Applied: 1},
			"", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, 200, nil)
			events := make([]cloudevent.Event, len(s.come))
			for i, version := range s.come {
				events[i] = v("a", version)
			}
			c.deliver(t, events...)
			report := c.replay(t, operate.Filter{}, s.options...)
			if s.refused != "" {
				require.Equal(t, s.refused, report.Problems[0].Code)
			}
			report.Problems = nil
			require.Equal(t, s.want, report)
			require.Equal(t, append([]string{}, s.left...), c.List(t,
				`select code || ' ' || version from dead_letter where state = 'waiting' order by version`))
			if s.left != nil {
				return
			}
			c.requireEffects(t, events...)
			require.Equal(t, []inbox.Outcome{inbox.Stale}, c.deliver(t, v("a", s.come[len(s.come)-1]-1)), "it comes after all")
			require.Positive(t, c.Count(t, `select count(*) from operator_action where detail ->> 'accepted_gap' = 'true'`))
		})
	}
}

// An event that is discarded closes the gap that it leaves, for what waits and for what is still to come.
func TestADiscardedEventLeavesNoGap(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 200, nil)
	c.fall("bad")
	c.deliver(t, v("a", 1), sick("a", 2, "bad"), v("a", 3), sick("b", 1, "bad"))
	_, err := operate.NewStore(c.Pool).Discard(t.Context(), operate.Filter{Code: inbox.CodeHandlerFailed},
		audit.Change{By: "ana"})
	require.NoError(t, err)
	require.Equal(t, []inbox.Outcome{inbox.Applied}, c.deliver(t, v("b", 2)))
	require.Equal(t, 1, c.replay(t, operate.Filter{}).Applied)
	require.Equal(t, 3, c.Count(t, `select version from inbox_watermark where key = 'a'`))
}

// What is taken up and fails is a dead letter like others, and tried no more by itself.
func TestWhatIsResumedAndFails(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 200, nil)
	c.fall("bad")
	c.deliver(t, v("a", 1), sick("a", 3, "bad"), v("a", 4), v("a", 2))
	require.Equal(t, []string{"handler_failed 3", "parked_behind 4"}, c.List(t,
		`select code || ' ' || version from dead_letter where state = 'waiting' order by version`))
	c.heal()
	require.Equal(t, 2, c.replay(t, operate.Filter{}).Applied)
}
