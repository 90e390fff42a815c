// Package metrics reads what a listener exports in Prometheus' text format.
package metrics

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Series is one line of /metrics: the value that a metric has for its labels.
type Series struct {
	Labels map[string]string
	Value  float64
}

// Set is metrics by their names.
type Set map[string][]Series

// MaxBytes bounds what one answer may hold.
const MaxBytes = 8 << 20

// Read keeps the metrics of the given names; the others are some hundred lines.
func Read(r io.Reader, names map[string]bool) (Set, error) {
	found := Set{}
	lines := bufio.NewScanner(io.LimitReader(r, MaxBytes))
	for lines.Scan() {
		line := lines.Text()
		end := strings.IndexAny(line, "{ ")
		if end < 0 || !names[line[:end]] {
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
		found[name] = append(found[name], Series{labels, value})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return found, nil
}

// Having picks the series that have all of the labels, given as name, value, name, value.
func (m Set) Having(name string, labels ...string) []Series {
	var picked []Series
next:
	for _, s := range m[name] {
		for i := 0; i < len(labels); i += 2 {
			if s.Labels[labels[i]] != labels[i+1] {
				continue next
			}
		}
		picked = append(picked, s)
	}
	return picked
}

// Sum adds series up; nil: there are none, so it is not known.
func Sum(all []Series) *float64 {
	if len(all) == 0 {
		return nil
	}
	total := 0.0
	for _, s := range all {
		total += s.Value
	}
	return &total
}

// Highest is the largest value of them; nil: there are none.
func Highest(all []Series) *float64 {
	if len(all) == 0 {
		return nil
	}
	top := all[0].Value
	for _, s := range all {
		top = max(top, s.Value)
	}
	return &top
}

// Values are those of a label, each once, in the order of the metric.
func (m Set) Values(name, label string) []string {
	var found []string
	seen := map[string]bool{}
	for _, s := range m[name] {
		if v := s.Labels[label]; v != "" && !seen[v] {
			seen[v] = true
			found = append(found, v)
		}
	}
	return found
}
