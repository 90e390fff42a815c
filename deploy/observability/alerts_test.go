// Package observability checks its folder's dashboards and rules against the services' metrics, and the alerts with
// Prometheus' own engine.
package observability

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"
)

// expected has the states that test/e2e records.
var expected = map[string][]string{
	"healthy":                 nil,
	"broker down":             {"DependencyDown"},
	"database down":           {"DependencyDown"},
	"mail server down":        {"DependencyDown"},
	"service gone":            {"ServiceDown"},
	"no relay leads":          {"NoRelayLeads"},
	"nothing published":       {"OutboxOld"},
	"relay refuses":           {"OutboxRefused"},
	"database went back":      {"OutboxDatabaseWentBack"},
	"broker went back":        {"OutboxBrokerWentBack"},
	"consumer went back":      {"InboxRewound"},
	"version given twice":     {"StaleInStrictConsumer"},
	"key refused":             {"KeyParked"},
	"consumer stands":         {"ConsumerStands"},
	"consumer behind":         {"ConsumerBehind"},
	"dead letter":             {"DeadLetter"},
	"version missing":         {"KeyHeld"},
	"mail uncertain":          {"MailUncertain"},
	"mail failed":             {"MailFailed"},
	"scheduled event held":    {"ScheduledOverdue"},
	"partitions locked":       {"PartitionsNotTidied"},
	"positions run out":       {"PositionRoomLow"},
	"events may come again":   {"HorizonRefused"},
	"a table does not answer": {"MetricsMissing"},
}

const storyName = "story"

func readRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile("rules/twinbox.yml", false, model.UTF8Validation)
	require.Empty(t, errs)
	var rules []rulefmt.Rule
	for _, group := range groups.Groups {
		require.Equal(t, model.Duration(interval), group.Interval)
		rules = append(rules, group.Rules...)
	}
	return rules
}

func TestEachAlertFiresInItsFaultAlone(t *testing.T) {
	rules, recorded := readRules(t), readRecordings(t)
	delete(recorded, storyName)
	require.ElementsMatch(t, slices.Collect(maps.Keys(expected)), slices.Collect(maps.Keys(recorded)))
	var known, fired []string
	for _, rule := range rules {
		known = append(known, rule.Alert+" "+rule.Labels["severity"])
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute})
	defer func() { require.NoError(t, engine.Close()) }()
	for name, r := range recorded {
		t.Run(name, func(t *testing.T) {
			h := r.history(t)
			var firing []string
			for _, rule := range rules {
				if fires(t, engine, h, rule) {
					firing = append(firing, rule.Alert)
					fired = append(fired, rule.Alert+" "+rule.Labels["severity"])
				}
			}
			slices.Sort(firing)
			require.Equal(t, expected[name], slices.Compact(firing))
		})
	}
	slices.Sort(known)
	slices.Sort(fired)
	require.Equal(t, slices.Compact(known), slices.Compact(fired), "an alert without a fault that it fires in")
}

func fires(t *testing.T, engine *promql.Engine, h history, rule rulefmt.Rule) bool {
	t.Helper()
	query, err := engine.NewRangeQuery(t.Context(), h, nil, rule.Expr, h.from, h.to, interval)
	require.NoError(t, err, rule.Alert)
	defer query.Close()
	result := query.Exec(t.Context())
	require.NoError(t, result.Err, rule.Alert)
	matrix, err := result.Matrix()
	require.NoError(t, err, rule.Alert)
	for _, series := range matrix {
		since, last := int64(0), int64(-1)
		for _, point := range series.Floats {
			if last < 0 || point.T-last > interval.Milliseconds() {
				since = point.T
			}
			last = point.T
			if last-since >= time.Duration(rule.For).Milliseconds() {
				return true
			}
		}
	}
	return false
}
