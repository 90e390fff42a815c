package inbox_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
)

func retention(kept time.Duration, err error) func(*inbox.Requirements) {
	return func(r *inbox.Requirements) { r.TopicRetention = keeps(kept, err) }
}

func groups(names ...string) func(*inbox.Requirements) {
	return func(r *inbox.Requirements) { r.Groups = names }
}

func keeps(kept time.Duration, err error) func(context.Context, string) (time.Duration, error) {
	return func(context.Context, string) (time.Duration, error) { return kept, err }
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	away := errors.New("broker away")
	fine := inbox.Requirements{
		Retention: 9 * day, Topics: []string{"t"}, TopicRetention: keeps(7*day, nil), Slack: day,
		HandlerTimeout: 10 * time.Second, RebalanceTimeout: 30 * time.Second,
		Groups: []string{"prod-eu.orders"}, Environment: "prod-eu", FromOldest: true,
	}
	require.NoError(t, fine.Check(t.Context()))
	for name, row := range map[string]struct {
		change func(*inbox.Requirements)
		codes  []string
	}{
		"retention equal": {func(r *inbox.Requirements) { r.Retention = 8 * day }, []string{inbox.CheckRetention}},
		"kept for ever":   {retention(-1, nil), []string{inbox.CheckRetention}},
		"kept for centuries": {
			retention(1<<63-1, nil), []string{inbox.CheckRetention},
		},
		"unknown":           {retention(0, away), []string{inbox.CheckTopicRetention}},
		"handler too slow":  {func(r *inbox.Requirements) { r.HandlerTimeout = time.Minute }, []string{inbox.CheckTimeout}},
		"group of anywhere": {groups("orders"), []string{inbox.CheckGroup}},
		"part of a word":    {groups("reprod-eux.o"), []string{inbox.CheckGroup}},
		"no environment":    {func(r *inbox.Requirements) { r.Environment = "" }, []string{inbox.CheckGroup}},
		"newest":            {func(r *inbox.Requirements) { r.FromOldest = false }, []string{inbox.CheckOffset}},
		"all at once": {
			func(r *inbox.Requirements) {
				*r = inbox.Requirements{Topics: []string{"t"}, TopicRetention: keeps(0, away), Groups: []string{"x"}}
			},
			[]string{inbox.CheckOffset, inbox.CheckTimeout, inbox.CheckGroup, inbox.CheckTopicRetention},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fine
			row.change(&r)
			err := r.Check(t.Context())
			var wrong *inbox.RequirementError
			require.ErrorAs(t, err, &wrong)
			var codes []string
			for _, v := range wrong.Violations {
				codes = append(codes, v.Code)
				require.ErrorContains(t, err, v.Code)
			}
			require.Equal(t, row.codes, codes)
			require.Equal(t, !slices.Equal(codes, []string{inbox.CheckTopicRetention}), wrong.Known())
			require.Equal(t, codes[len(codes)-1] == inbox.CheckTopicRetention, errors.Is(err, away),
				"an unreachable broker can be told from a wrong setting")
		})
	}
}
