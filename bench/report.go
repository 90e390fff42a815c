package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// heading is how every result begins.
type heading struct {
	Benchmark string `json:"benchmark"`
	Quick     bool   `json:"quick"`
	Taken     string `json:"taken"` // day
	Seconds   int    `json:"seconds"`
	Rounds    int    `json:"rounds"`
}

func newHeading(benchmark string, quick bool, took time.Duration, rounds int) heading {
	return heading{
		Benchmark: benchmark, Quick: quick, Taken: time.Now().UTC().Format(time.DateOnly),
		Seconds: int(took.Seconds()), Rounds: rounds,
	}
}

// evidence is how every result ends: what was promised, what it was measured on, and all figures.
type evidence struct {
	Goals   []goal   `json:"goals"`
	Machine facts    `json:"machine"`
	Plan    any      `json:"plan"`
	Groups  []*group `json:"groups"`
}

// report is the result of a benchmark. It is JSON as it stands.
type report interface {
	parts() (heading, evidence)
	picture() []byte
}

// printTable prints goals and figures for a person.
func printTable(w io.Writer, r report) error {
	head, ev := r.parts()
	var t bytes.Buffer
	if head.Quick {
		t.WriteString("QUICK RUN: a smaller version of the benchmark, too short to quote.\n\n")
	}
	writeGoals(&t, ev.Goals)
	for _, g := range ev.Groups {
		writeGroup(&t, g)
	}
	writeFacts(&t, head, ev.Machine)
	_, err := w.Write(t.Bytes())
	return err
}

// pictureNote is the line below a picture's title.
func pictureNote(h heading, m facts) string {
	note := fmt.Sprintf("median of %d rounds, lines from minimum to maximum; %d cores, PostgreSQL %s, broker %s", h.Rounds,
		m.Cores, m.PostgreSQL, m.Broker)
	if h.Quick {
		return "QUICK RUN, too short to quote; " + note
	}
	return note
}

// writeReport puts name.json and name.svg into the folder.
func writeReport(r report, dir, name string, out io.Writer) error {
	doc, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	for suffix, content := range map[string][]byte{".json": append(doc, '\n'), ".svg": r.picture()} {
		if err := os.WriteFile(filepath.Join(dir, name+suffix), content, 0o644); err != nil {
			return fmt.Errorf("write result: %w", err)
		}
	}
	_, err = fmt.Fprintf(out, "\nwritten: %s and %s.svg\n", filepath.Join(dir, name+".json"), name)
	return err
}

// isFullResult reports whether the folder holds the result of a run that was not quick.
func isFullResult(dir, name string) bool {
	content, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if err != nil {
		return false
	}
	var r struct {
		Quick bool `json:"quick"`
	}
	return json.Unmarshal(content, &r) == nil && !r.Quick
}
