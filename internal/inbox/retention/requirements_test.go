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

func groups(names ...string) func(*retention.Requirements) {
	return func(r *retention.Requirements) { r.Groups = names }
}

func keeps(kept time.Duration, err error) func(context.Context, string) (time.Duration, error) {
	return func(context.Context, string) (time.Duration, error) { return kept, err }
}

// A topic with retention.ms=-1 can bring any event again. The refusal names the topic and what to set.
func TestATopicWithoutALimitIsRefusedInPlainWords(t *testing.T) {
	t.Parallel()
	err := retention.Requirements{
		Retention: 9 * day, Topics: []string{"short", "endless"}, Slack: day, FromOldest: true, RebalanceTimeout: 1,
		TopicRetention: func(_ context.Context, topic string) (time.Duration, error) {
			return map[string]time.Duration{"short": day, "endless": -1}[topic], nil
		},
	}.Check(t.Context())
	require.EqualError(t, err, "inbox requirement retention_too_short: the topic endless keeps its records without a "+
		"time limit, so an event could come again after the inbox has forgotten it: set the topic's cleanup.policy to "+
		"delete and its retention.ms below 691200000 (192h0m0s)")
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	away := errors.New("broker away")
	const unknown = "unknown" // the code of no violation: the broker did not answer
	fine := retention.Requirements{
		Retention: 9 * day, Topics: []string{"t"}, TopicRetention: keeps(7*day, nil), Slack: day,
		HandlerTimeout: 10 * time.Second, RebalanceTimeout: 30 * time.Second,
		Groups: []string{"prod-eu.orders"}, Environment: "prod-eu", FromOldest: true,
	}
	require.NoError(t, fine.Check(t.Context()))
	for name, row := range map[string]struct {
		change func(*retention.Requirements)
		codes  []string
	}{
		"retention equal": {func(r *retention.Requirements) { r.Retention = 8 * day }, []string{retention.CheckRetention}},
		"kept for ever":   {keptFor(-1, nil), []string{retention.CheckRetention}},
		"kept for centuries": {
			keptFor(1<<63-1, nil), []string{retention.CheckRetention},
		},
		"unknown": {keptFor(0, away), []string{unknown}},
		"handler too slow": {
			func(r *retention.Requirements) { r.HandlerTimeout = time.Minute }, []string{retention.CheckTimeout},
		},
		"group of anywhere": {groups("orders"), []string{retention.CheckGroup}},
		"part of a word":    {groups("reprod-eux.o"), []string{retention.CheckGroup}},
		"no environment":    {func(r *retention.Requirements) { r.Environment = "" }, []string{retention.CheckGroup}},
		"newest":            {func(r *retention.Requirements) { r.FromOldest = false }, []string{retention.CheckOffset}},
		"all at once": {
			func(r *retention.Requirements) {
				*r = retention.Requirements{Topics: []string{"t"}, TopicRetention: keeps(0, away), Groups: []string{"x"}}
			},
			[]string{retention.CheckOffset, retention.CheckTimeout, retention.CheckGroup, unknown},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fine
			row.change(&r)
			err := r.Check(t.Context())
			var all interface{ Unwrap() []error }
			require.ErrorAs(t, err, &all)
			var codes []string
			for _, one := range all.Unwrap() {
				code := unknown
				if v, is := errors.AsType[*retention.Violation](one); is {
					code = v.Code
					require.ErrorContains(t, err, code)
				}
				codes = append(codes, code)
			}
			require.Equal(t, row.codes, codes)
			require.Equal(t, codes[len(codes)-1] == unknown, errors.Is(err, away),
				"an unreachable broker can be told from a wrong setting")
		})
	}
}
