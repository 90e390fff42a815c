package main

import (
	"fmt"
	"strings"
	"time"
)

// pathReport is bench/results/path.json.
type pathReport struct {
	heading

	P50           number `json:"p50_ms"` // commit to committed inbox at 1,000/s
	P99           number `json:"p99_ms"`
	P999          number `json:"p999_ms"`
	DueP50        number `json:"due_p50_ms"` // due to committed inbox at 1,000/s
	DueP99        number `json:"due_p99_ms"`
	DueP999       number `json:"due_p999_ms"`
	Held          number `json:"held_per_s"`
	HeldStock     number `json:"held_stock_per_s"`
	HeldOverStock number `json:"held_over_stock"`

	// PostgreSQLOverStock is the CPU time that PostgreSQL takes per event at 1,000/s, over what it takes under stock.
	PostgreSQLOverStock number `json:"postgresql_cpu_over_stock"`

	evidence
	Search []probe `json:"search"`
}

const perSecondSignups = "signups/s"

// pathGroups lays out the figures of "bench path".
func pathGroups() []*group {
	held := &group{
		Title: "Highest rate held for a minute",
		Note:  fmt.Sprintf("99 of 100 in the inbox within %s of when they were due, nothing piling up", heldBound),
	}
	arrived := &group{Title: "Arrived in those runs", Note: "less than was due, and no latency above: did not keep up"}
	groups := []*group{held}
	for _, v := range pathLines {
		held.Figures = append(held.Figures, &figure{ID: "held." + v.name, Label: v.label, Unit: perSecondSignups})
	}
	for _, q := range pathQuantiles {
		groups = append(groups, pathLatencyGroup("Commit to committed inbox, "+q.label, q.name))
	}
	for _, q := range pathQuantiles {
		groups = append(groups, pathLatencyGroup("Due to committed inbox, "+q.label, "due."+q.name))
	}
	eachPathRate(func(id, label string) {
		arrived.Figures = append(arrived.Figures, &figure{ID: id + ".arrived", Label: label, Unit: perSecondSignups})
	})
	cpu := &group{
		Title: "PostgreSQL's CPU time per event",
		Note:  "all processes of the server, from the signup to the other service's inbox",
	}
	eachPathRate(func(id, label string) {
		cpu.Figures = append(cpu.Figures, &figure{ID: id + ".postgresql", Label: label, Unit: millis})
	})
	return append(groups, cpu, arrived)
}

func pathLatencyGroup(title, suffix string) *group {
	g := &group{Title: title, Note: "open loop, Poisson arrivals; both services and the broker on this machine"}
	eachPathRate(func(id, label string) {
		g.Figures = append(g.Figures, &figure{ID: id + "." + suffix, Label: label, Unit: millis})
	})
	return g
}

func eachPathRate(do func(id, label string)) {
	for _, v := range pathLines {
		for _, rate := range fullPathPlan.Rates {
			do(fmt.Sprintf("path.%.0f.%s", rate, v.name), fmt.Sprintf("%s, %.0f/s", v.label, rate))
		}
	}
}

func (b *pathBench) report(f facts, quick bool, took time.Duration) *pathReport {
	of := func(id string) []float64 { return b.sheet.rounds(id) }
	goals := []goal{
		newGoal("p50_ms", "commit to committed inbox at 1,000/s, p50", millis, atMost, 10, of("path.1000.ours.p50")),
		newGoal("p99_ms", "commit to committed inbox at 1,000/s, p99", millis, atMost, 50, of("path.1000.ours.p99")),
		newGoal("held_over_stock", "highest rate held, ours over stock", "x", atLeast, 5,
			ratios(of("held.ours"), of("held.stock"))),
		newGoal("postgresql_cpu_over_stock", "PostgreSQL's CPU at 1,000/s, ours over stock", "x", atMost, 1,
			ratios(of("path.1000.ours.postgresql"), of("path.1000.stock.postgresql"))),
	}
	median := func(id string) number { return summarise(of(id)).Median }
	return &pathReport{
		heading: newHeading("path", quick, took, b.plan.Rounds),
		P50:     goals[0].Median, P99: goals[1].Median, P999: median("path.1000.ours.p999"),
		DueP50: median("path.1000.ours.due.p50"), DueP99: median("path.1000.ours.due.p99"),
		DueP999: median("path.1000.ours.due.p999"),
		Held:    median("held.ours"), HeldStock: median("held.stock"), HeldOverStock: goals[2].Median,
		PostgreSQLOverStock: goals[3].Median,
		evidence:            evidence{Goals: goals, Machine: f, Plan: b.plan, Groups: b.sheet.measured()},
		Search:              b.probes,
	}
}

func (r *pathReport) parts() (heading, evidence) { return r.heading, r.evidence }

// picture is the report as an SVG.
func (r *pathReport) picture() []byte {
	c := chart{
		title: "From a signup's commit to the other service's inbox: ours and Watermill's own parts",
		note: fmt.Sprintf("latency: median of %d rounds, lines from minimum to maximum; %d cores, PostgreSQL %s, broker %s",
			r.Rounds, r.Machine.Cores, r.Machine.PostgreSQL, r.Machine.Broker),
		tiles: []tile{
			{format(r.P50) + " / " + format(r.P99) + " ms", "commit to inbox p50 / p99 at 1,000/s"},
			{format(r.Held) + " /s", "signups held for a minute"},
			{format(r.HeldOverStock) + " x", "what stock holds"},
		},
	}
	if r.Quick {
		c.note = "QUICK RUN, too short to quote; " + c.note
	}
	for _, g := range r.Groups {
		p := panel{title: g.Title, note: g.Note}
		for _, f := range g.Figures {
			if !strings.HasSuffix(f.ID, ".arrived") {
				p.bars = append(p.bars, bar{label: f.Label, unit: f.Unit, class: classOf(f.ID), summary: f.summary})
			}
		}
		if len(p.bars) > 0 {
			c.panels = append(c.panels, p)
		}
	}
	return c.svg()
}
