package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

type report struct {
	Benchmark string   `json:"benchmark"`
	Quick     bool     `json:"quick"`
	Taken     string   `json:"taken"`
	Seconds   int      `json:"seconds"`
	Rounds    int      `json:"rounds"`
	Goals     []goal   `json:"goals"`
	Machine   machine  `json:"machine"`
	Plan      any      `json:"plan"`
	Groups    []*group `json:"groups"`

	title string
}

func (b *benchmark) report(m machine, quick bool, rounds int, took time.Duration) *report {
	r := &report{
		Benchmark: b.name, Quick: quick, Taken: time.Now().UTC().Format(time.DateOnly), Seconds: int(took.Seconds()),
		Rounds: rounds, Machine: m, Plan: b.plan, Groups: b.sheet.measured(), title: b.title,
	}
	for _, g := range b.goals {
		r.Goals = append(r.Goals, g.judge(b.sheet))
	}
	return r
}

// warnings are the reasons not to quote the figures.
func (r *report) warnings() (list []string) {
	if r.Quick {
		list = append(list, "QUICK RUN: a smaller version of the benchmark, too short to quote.")
	}
	if r.Machine.isLoaded() {
		list = append(list, fmt.Sprintf("LOADED MACHINE: load average %s on %d cores before the run. Trust the ratios alone.",
			format(r.Machine.Load), r.Machine.Cores))
	}
	return list
}

func (r *report) picture() []byte {
	lines := append(r.warnings(), fmt.Sprintf(
		"median of %d rounds, lines from minimum to maximum; %d cores, PostgreSQL %s, broker %s",
		r.Rounds, r.Machine.Cores, r.Machine.PostgreSQL, r.Machine.Broker))
	for _, g := range r.Goals {
		if g.isMeasured() {
			lines = append(lines, fmt.Sprintf("%s: %s (%s)", g.Label, withUnit(g.judged(), g.Unit), g.bar()))
		}
	}
	return drawSVG(r.title, lines, r.Groups)
}

func (r *report) write(dir, name string, out io.Writer) error {
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
