package observability

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"
)

var recordings = flag.String("recordings", "", "folder that test/e2e wrote its recordings to")

type recording struct {
	Name    string `json:"name"`
	GoesOn  bool   `json:"goes_on"`
	Scrapes []struct {
		At      time.Time         `json:"at"`
		Targets map[string]string `json:"targets"`
	} `json:"scrapes"`
}

func readRecordings(t *testing.T) map[string]recording {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(*recordings, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "no recordings; make test-observability makes them")
	read := map[string]recording{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var r recording
		require.NoError(t, json.Unmarshal(content, &r), file)
		read[r.Name] = r
	}
	return read
}

type sample struct {
	labels labels.Labels
	value  float64
}

func samples(t *testing.T, job, text string) map[string]sample {
	t.Helper()
	read := map[string]sample{}
	add := func(series labels.Labels, v float64) {
		full := labels.NewBuilder(series).Set("job", job).Set("instance", job+":8081").Labels()
		read[full.String()] = sample{full, v}
	}
	up := 1.0
	if text == "" {
		up = 0
	}
	add(labels.FromStrings(model.MetricNameLabel, "up"), up)
	parser := textparse.NewPromParser([]byte(text), labels.NewSymbolTable(), false)
	for {
		kind, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return read
		}
		require.NoError(t, err)
		if kind != textparse.EntrySeries {
			continue
		}
		var series labels.Labels
		parser.Labels(&series)
		_, _, v := parser.Series()
		add(series, v)
	}
}

const (
	interval = 15 * time.Second
	before   = 20 * time.Minute // of the recording's first state
	after    = 40 * time.Minute // of its last state
)

type history struct {
	*teststorage.TestStorage
	from, to time.Time
}

// The first scrape repeats before the others, and the last one after. In a state that lasts, rising series continue
// to rise.
func (r recording) history(t *testing.T) history {
	t.Helper()
	h := history{TestStorage: teststorage.New(t), from: time.Unix(0, 0)}
	now := h.from
	last := map[string]sample{}
	write := func(looks map[string]sample) {
		appender := h.Appender(t.Context())
		for key, s := range looks {
			_, err := appender.Append(storage.SeriesRef(0), s.labels, timestamp.FromTime(now), s.value)
			require.NoError(t, err)
			delete(last, key)
		}
		for _, gone := range last {
			_, err := appender.Append(storage.SeriesRef(0), gone.labels, timestamp.FromTime(now),
				math.Float64frombits(value.StaleNaN))
			require.NoError(t, err)
		}
		require.NoError(t, appender.Commit())
		last = looks
		now = now.Add(interval)
	}
	copied := func(looks map[string]sample, by func(key string, s sample) float64) map[string]sample {
		next := make(map[string]sample, len(looks))
		for key, s := range looks {
			next[key] = sample{s.labels, by(key, s)}
		}
		return next
	}
	same := func(_ string, s sample) float64 { return s.value }

	looks := make([]map[string]sample, len(r.Scrapes))
	for i, scrape := range r.Scrapes {
		looks[i] = map[string]sample{}
		for job, text := range scrape.Targets {
			maps.Copy(looks[i], samples(t, job, text))
		}
	}
	for range before / interval {
		write(copied(looks[0], same))
	}
	for _, look := range looks {
		write(copied(look, same))
	}
	end := len(looks) - 1
	rises := same
	if r.GoesOn {
		passed := r.Scrapes[end].At.Sub(r.Scrapes[end-1].At)
		rises = func(key string, s sample) float64 {
			earlier, known := looks[end-1][key]
			if !known || looks[end][key].value <= earlier.value {
				return s.value
			}
			return s.value + (looks[end][key].value-earlier.value)*float64(interval)/float64(passed)
		}
	}
	for range after / interval {
		write(copied(last, rises))
	}
	h.to = now.Add(-interval)
	return h
}
