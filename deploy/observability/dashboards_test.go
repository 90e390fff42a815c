package observability

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// exceptions are on no dashboard and in no rule.
var exceptions = map[string]string{
	"outbox_topic_info": "the console reads from it which service owns a topic",
}

// Other dashboards exist for these.
var notOurs = regexp.MustCompile(`^(go|process|promhttp)_`)

type expression struct {
	where, text, legend string
	dashboard           bool
}

func expressions(t *testing.T) []expression {
	t.Helper()
	var list []expression
	for _, rule := range readRules(t) {
		list = append(list, expression{where: rule.Alert, text: rule.Expr})
	}
	files, err := filepath.Glob("dashboards/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var page struct {
			Annotations struct{ List []struct{ Name, Expr string } }
			Panels      []struct {
				Title   string
				Targets []struct{ Expr, LegendFormat string }
			}
		}
		require.NoError(t, json.Unmarshal(content, &page), file)
		for _, panel := range page.Panels {
			for _, target := range panel.Targets {
				list = append(list, expression{file + ": " + panel.Title, target.Expr, target.LegendFormat, true})
			}
		}
		for _, a := range page.Annotations.List {
			list = append(list, expression{where: file + ": " + a.Name, text: a.Expr, dashboard: true})
		}
	}
	return list
}

var variables = strings.NewReplacer("$__rate_interval", "5m", "$job", ".+", "$instance", ".+")

func (e expression) parse(t *testing.T) parser.Expr {
	t.Helper()
	parsed, err := parser.ParseExpr(variables.Replace(e.text))
	require.NoError(t, err, e.where)
	return parsed
}

func vocabulary(t *testing.T) map[string]map[string][]string {
	t.Helper()
	words := map[string]map[string][]string{}
	for _, r := range readRecordings(t) {
		for _, scrape := range r.Scrapes {
			for job, text := range scrape.Targets {
				for _, s := range samples(t, job, text) {
					name := s.labels.Get(model.MetricNameLabel)
					if words[name] == nil {
						words[name] = map[string][]string{}
					}
					s.labels.Range(func(l labels.Label) {
						if !slices.Contains(words[name][l.Name], l.Value) {
							words[name][l.Name] = append(words[name][l.Name], l.Value)
						}
					})
				}
			}
		}
	}
	return words
}

var legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)

func TestExpressionsAskForWhatIsExported(t *testing.T) {
	words := vocabulary(t)
	for _, e := range expressions(t) {
		known := map[string]bool{}
		var grouping []string
		parser.Inspect(e.parse(t), func(node parser.Node, _ []parser.Node) error {
			switch n := node.(type) {
			case *parser.VectorSelector:
				require.Contains(t, words, n.Name, e.where)
				for label := range words[n.Name] {
					known[label] = true
				}
				for _, m := range n.LabelMatchers {
					require.Contains(t, words[n.Name], m.Name, "%s: %s has no such label", e.where, n.Name)
					require.True(t, slices.ContainsFunc(words[n.Name][m.Name], m.Matches), "%s: %s never had %s", e.where, n.Name, m)
					require.Subset(t, words[n.Name][m.Name], m.SetMatches(), "%s: %s", e.where, m)
				}
			case *parser.AggregateExpr:
				grouping = append(grouping, n.Grouping...)
			case *parser.BinaryExpr:
				if n.VectorMatching != nil {
					grouping = append(grouping, n.VectorMatching.MatchingLabels...)
				}
			}
			return nil
		})
		for _, label := range grouping {
			require.True(t, known[label], "%s: no metric in it has the label %s", e.where, label)
		}
		for _, label := range legendLabel.FindAllStringSubmatch(e.legend, -1) {
			require.True(t, known[label[1]], "%s: no metric in it has the label %s of the legend", e.where, label[1])
			if len(grouping) > 0 {
				require.Contains(t, grouping, label[1], "%s: the legend's label is summed away", e.where)
			}
		}
	}
}

var suffix = regexp.MustCompile(`_(bucket|sum|count)$`)

func TestEveryMetricIsLookedAt(t *testing.T) {
	var seen []string
	for _, e := range expressions(t) {
		parser.Inspect(e.parse(t), func(node parser.Node, _ []parser.Node) error {
			if selector, is := node.(*parser.VectorSelector); is {
				seen = append(seen, suffix.ReplaceAllString(selector.Name, ""))
			}
			return nil
		})
	}
	words := vocabulary(t)
	for _, name := range slices.Sorted(maps.Keys(words)) {
		if name = suffix.ReplaceAllString(name, ""); strings.HasPrefix(name, "pgxpool_") || notOurs.MatchString(name) {
			continue // libraries serve more than is needed
		}
		if exceptions[name] != "" {
			require.NotContains(t, seen, name, "it is among the exceptions")
			continue
		}
		require.Contains(t, seen, name, "it stands on no dashboard and in no rule")
	}
	for name, reason := range exceptions {
		require.Contains(t, words, name, "an exception for what is not exported")
		require.NotEmpty(t, reason, name)
	}
}

// The pool's library names its counters otherwise.
var counter = regexp.MustCompile(`_total$|^pgxpool_.*(_count|_ns|empty_acquire)$`)

func TestDashboardsReadCountersAsRates(t *testing.T) {
	for _, e := range expressions(t) {
		if !e.dashboard {
			continue
		}
		parser.Inspect(e.parse(t), func(node parser.Node, path []parser.Node) error {
			selector, is := node.(*parser.VectorSelector)
			if !is {
				return nil
			}
			var names []string
			for _, m := range selector.LabelMatchers {
				names = append(names, m.Name)
			}
			require.Subset(t, names, []string{"job", "instance"}, "%s: %s", e.where, selector.Name)
			counts := counter.MatchString(selector.Name) || suffix.MatchString(selector.Name)
			rated := false
			for _, above := range path {
				if call, is := above.(*parser.Call); is && slices.Contains([]string{"rate", "increase"}, call.Func.Name) {
					rated = true
				}
			}
			require.Equal(t, counts, rated, "%s: %s is a counter: %v, read as a rate: %v", e.where, selector.Name, counts, rated)
			return nil
		})
		for _, window := range regexp.MustCompile(`rate\(.*?\[(.*?)\]`).FindAllStringSubmatch(e.text, -1) {
			require.Equal(t, "$__rate_interval", window[1], e.where)
		}
	}
}
