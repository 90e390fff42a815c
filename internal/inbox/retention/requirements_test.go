package retention_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox/retention"
)

func keptFor(d time.Duration, err error) func(*retention.Requirements) {
	return func(r *retention.Requirements) { r.TopicRetention = keeps(d, err) }
}

func keeps(kept time.Duration, err error) func(context.Context, string) (time.Duration, error) {
	return func(context.Context, string) (time.Duration, error) { return kept, err }
}

func TestATopicWithoutALimitIsRefusedInPlainWords(t *testing.T) {
	t.Parallel()
	err := retention.Requirements{
		Retention: 9 * day, Topics: []string{"short", "endless"}, Slack: day,
		TopicRetention: func(_ context.Context, topic string) (time.Duration, error) {
			return map[string]time.Duration{"short": day, "endless": -1}[topic], nil
		},
	}.Check(t.Context())
	require.EqualError(t, err, "inbox requirement retention_too_short: an event of the topic endless could come "+
		"again after the inbox has forgotten it: set the topic's cleanup.policy to delete and "+
		"its retention.ms below 691200000 (192h0m0s)")
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	away := errors.New("broker away")
	const violation, unknown = "violation", "unknown"
	fine := retention.Requirements{
		Retention: 9 * day, Topics: []string{"t"}, TopicRetention: keeps(8*day-1, nil), Slack: day,
	}
	require.NoError(t, fine.Check(t.Context()))
	for name, row := range map[string]struct {
		change func(*retention.Requirements)
		want   []string
	}{
		"retention equal":    {keptFor(8*day, nil), []string{violation}},
		"kept for ever":      {keptFor(-1, nil), []string{violation}},
		"kept for centuries": {keptFor(1<<63-1, nil), []string{violation}},
		"unknown":            {keptFor(0, away), []string{unknown}},
		"two topics": {
			func(r *retention.Requirements) {
				r.Topics = []string{"long", "unknown"}
				r.TopicRetention = func(ctx context.Context, topic string) (time.Duration, error) {
					if topic == "long" {
						return 9 * day, nil
					}
					return 0, away
				}
			},
			[]string{violation, unknown},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fine
			row.change(&r)
			err := r.Check(t.Context())
			var all interface{ Unwrap() []error }
			require.ErrorAs(t, err, &all)
			var found []string
			for _, one := range all.Unwrap() {
				if _, is := errors.AsType[*retention.Violation](one); is {
					require.ErrorContains(t, one, "retention_too_short")
					found = append(found, violation)
				} else {
					require.ErrorIs(t, one, away, "an unreachable broker can be told from a wrong setting")
					found = append(found, unknown)
				}
			}
			require.Equal(t, row.want, found)
		})
	}
}
