// Package metrics reads what a service's admin listener shows without the token.
package metrics

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/service"
)

// Sample is what a service shows at one time: its metrics, and whether it is ready and why it waits.
type Sample struct {
	Metrics Set
	Ready   service.Readiness
}

// takeFor is how long a service may take for both, whose own limit for a check is 2 s.
const takeFor = 4 * time.Second

// Take asks a service for a sample.
func Take(ctx context.Context, s *client.Service) (taken Sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, takeFor)
	defer cancel()
	var both errgroup.Group
	both.Go(func() error {
		return s.Look(ctx, "/metrics", func(body io.Reader) (err error) {
			taken.Metrics, err = Read(body)
			return err
		})
	})
	both.Go(func() error {
		return s.Look(ctx, "/readyz", func(body io.Reader) error {
			if err := json.NewDecoder(io.LimitReader(body, maxBytes)).Decode(&taken.Ready); err != nil {
				return fmt.Errorf("read readiness: %w", err)
			}
			return nil
		})
	})
	err = both.Wait()
	return taken, err
}

// Series is one line of /metrics: the value that a metric has for its labels.
type Series struct {
	Labels map[string]string
	Value  float64
}

// Set is metrics by their names.
type Set map[string][]Series

// maxBytes bounds what one answer may hold.
const maxBytes = 8 << 20

// Read reads Prometheus' text format.
func Read(r io.Reader) (Set, error) {
	found := Set{}
	lines := bufio.NewScanner(io.LimitReader(r, maxBytes))
	for lines.Scan() {
		line := lines.Text()
		end := strings.IndexAny(line, "{ ")
		if end < 0 || line[0] == '#' {
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
	return slices.DeleteFunc(slices.Clone(m[name]), func(s Series) bool {
		for of := range slices.Chunk(labels, 2) {
			if s.Labels[of[0]] != of[1] {
				return true
			}
		}
		return false
	})
}

// Sum adds series up; nil: there are none, so it is not known.
func Sum(all []Series) *float64 { return fold(all, func(a, b float64) float64 { return a + b }) }

// Highest is the largest value of them; nil: there are none.
func Highest(all []Series) *float64 { return fold(all, math.Max) }

func fold(all []Series, join func(a, b float64) float64) *float64 {
	if len(all) == 0 {
		return nil
	}
	value := all[0].Value
	for _, s := range all[1:] {
		value = join(value, s.Value)
	}
	return &value
}

// Values are those of a label, each once, in the order of the metric.
func (m Set) Values(name, label string) (found []string) {
	for _, s := range m[name] {
		if v := s.Labels[label]; v != "" && !slices.Contains(found, v) {
			found = append(found, v)
		}
	}
	return found
}
