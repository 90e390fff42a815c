package main

import (
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
)

// What arrived is counted by events, and by the order in which those of a key came first: a duplicate is neither more
// nor out of order, with any events between.
func TestTallyOfATopic(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		numbers              []int // of two keys, the even ones and the odd ones
		distinct, inversions int
	}{
		"in order":                {[]int{0, 1, 2, 3}, 4, 0},
		"keys side by side":       {[]int{1, 3, 0, 2}, 4, 0},
		"all again":               {[]int{0, 1, 2, 3, 0, 1, 2, 3}, 4, 0},
		"out of order":            {[]int{2, 0, 1, 3}, 4, 1},
		"lost":                    {[]int{0, 2, 3}, 3, 0},
		"lost, another one twice": {[]int{0, 1, 2, 2}, 3, 0},
		"late":                    {[]int{0, 2, 4, 1, 3, 2}, 5, 0},
	} {
		tally := tally{seen: make([]bool, 5), newest: map[string]int{}}
		for _, n := range c.numbers {
			header := []string{"ce_id", "_watermill_message_uuid"}[n%2] // ours and stock's
			require.NoError(t, tally.count(&sarama.ConsumerMessage{
				Key: []byte{byte(n % 2)},
				Headers: []*sarama.RecordHeader{
					{Key: []byte("other"), Value: []byte("x")}, {Key: []byte(header), Value: []byte(eventID(n))},
				},
			}), name)
		}
		require.Equal(t, []int{c.distinct, c.inversions}, []int{tally.distinct, tally.inversions}, name)
	}
	tally := tally{seen: make([]bool, 5), newest: map[string]int{}}
	for _, id := range []string{"", "x", eventID(5)} {
		require.ErrorIs(t, tally.count(&sarama.ConsumerMessage{
			Headers: []*sarama.RecordHeader{{Key: []byte("ce_id"), Value: []byte(id)}},
		}), errForeignID, "another program's record")
	}
	require.ErrorIs(t, tally.count(&sarama.ConsumerMessage{}), errForeignID)
}

// The search pays for what it finds: it tries no rate twice and stops when it is close enough.
func TestSearchTriesNoRateTwice(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{3, 49, 51, 499, 500, 501, 12_345} {
		seen := map[float64]bool{}
		lowest, highest := 0.0, 1e9
		found, err := search(500, 1.1, func(rate float64) (bool, error) {
			require.False(t, seen[rate], "%v is tried twice for %v", rate, limit)
			require.Greater(t, rate, lowest, "known to be held")
			require.Less(t, rate, highest, "known not to be")
			seen[rate] = true
			if rate <= limit {
				lowest = max(lowest, rate)
			} else {
				highest = min(highest, rate)
			}
			return rate <= limit, nil
		})
		require.NoError(t, err)
		require.InDelta(t, lowest, found, 0, "what was held, not what was tried last")
		if found == 0 {
			require.Less(t, limit, 50.0, "a tenth of the first rate is looked for")
			continue
		}
		require.LessOrEqual(t, highest/found, 1.1)
	}
}

func TestConfirmGivesUp(t *testing.T) {
	t.Parallel()
	tried := 0
	held, err := confirm(1000, func(rate float64) (bool, error) {
		tried++
		return tried == confirmTries, nil
	})
	require.NoError(t, err)
	require.Positive(t, held, "the last try counts")
	tried = 0
	_, err = confirm(1000, func(float64) (bool, error) { tried++; return tried > confirmTries, nil })
	require.NoError(t, err)
	require.Equal(t, confirmTries, tried)
	broken := errors.New("broken")
	_, err = confirm(1000, func(float64) (bool, error) { return false, broken })
	require.ErrorIs(t, err, broken)
}

// A line that was cut short did not hold the rate, however fast the few were that it made; and what arrives while the
// schedule still runs does not make the rate higher than it was.
func TestCutShortAndRate(t *testing.T) {
	t.Parallel()
	p, a := passed(100, heldBound, func(int) time.Duration { return time.Millisecond })
	require.InDelta(t, 50, p.rate(a, 2*time.Second), 0, "of the schedule's length")
	require.InDelta(t, 100/0.991, p.rate(a, 500*time.Millisecond), 0.01, "to the last that came")
	require.Equal(t, 100, p.made())
	p.users[3] = ""
	require.Equal(t, 99, p.made())
	p.cut = true
	held, why := p.verdict(a)
	require.False(t, held)
	require.Contains(t, why, "500ms")
}
