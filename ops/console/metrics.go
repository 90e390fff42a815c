package console

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// series is one line of /metrics: the value that a metric has for its labels.
type series struct {
	labels map[string]string
	value  float64
}

// metrics are those that the flow is made of, by name.
type metrics map[string][]series

// flowMetrics are the names that are kept; the others are some hundred lines a second.
var flowMetrics = map[string]bool{
	"http_server_requests_total": true, "http_server_requests_in_flight": true,
	"outbox_events_added_total": true, "outbox_relay_lag_events": true, "outbox_relay_oldest_unpublished_seconds": true,
	"outbox_relay_published_total": true, "outbox_relay_has_leader": true, "outbox_relay_held_events": true,
	"outbox_relay_parked_keys":   true,
	"kafka_consumer_lag_records": true, "kafka_consumer_lag_seconds": true,
	"inbox_messages_total": true, "dead_letters_waiting": true,
	"lease_rows": true, "lease_oldest_seconds": true, "lease_attempts_total": true,
	"verify_findings": true, "verify_age_seconds": true,
}

// maxMetricsBytes bounds what one answer may hold.
const maxMetricsBytes = 8 << 20

// readMetrics reads Prometheus' text format.
func readMetrics(r io.Reader) (metrics, error) {
	found := metrics{}
	lines := bufio.NewScanner(io.LimitReader(r, maxMetricsBytes))
	for lines.Scan() {
		line := lines.Text()
		end := strings.IndexAny(line, "{ ")
		if end < 0 || !flowMetrics[line[:end]] {
			continue
		}
		name, rest := line[:end], line[end:]
		labels := map[string]string{}
		for strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, ",") {
			key, quoted, _ := strings.Cut(rest[1:], "=")
			value, err := strconv.QuotedPrefix(quoted)
			if err != nil {
				return nil, fmt.Errorf("read metrics: labels of %s: %w", name, err)
			}
			rest = quoted[len(value):]
			if labels[key], err = strconv.Unquote(value); err != nil {
				return nil, fmt.Errorf("read metrics: labels of %s: %w", name, err)
			}
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimPrefix(rest, "}")), 64)
		if err != nil {
			return nil, fmt.Errorf("read metrics: value of %s: %w", name, err)
		}
		found[name] = append(found[name], series{labels, value})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return found, nil
}

// having picks the series that have all of the labels, given as name, value, name, value.
func (m metrics) having(name string, labels ...string) []series {
	var picked []series
next:
	for _, s := range m[name] {
		for i := 0; i < len(labels); i += 2 {
			if s.labels[labels[i]] != labels[i+1] {
				continue next
			}
		}
		picked = append(picked, s)
	}
	return picked
}

// sum adds series up; nil: there are none, so it is not known.
func sum(all []series) *float64 {
	if len(all) == 0 {
		return nil
	}
	total := 0.0
	for _, s := range all {
		total += s.value
	}
	return &total
}

// highest is the largest value of them.
func highest(all []series) *float64 {
	if len(all) == 0 {
		return nil
	}
	top := all[0].value
	for _, s := range all {
		top = max(top, s.value)
	}
	return &top
}

// values are those of a label, each once, in the order of the metric.
func (m metrics) values(name, label string) []string {
	var found []string
	seen := map[string]bool{}
	for _, s := range m[name] {
		if v := s.labels[label]; v != "" && !seen[v] {
			seen[v] = true
			found = append(found, v)
		}
	}
	return found
}
