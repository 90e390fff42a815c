package main

import (
	"strings"
	"time"
)

// inboxReport is bench/results/inbox.json. All ratios but those of the history are at 12 partitions.
type inboxReport struct {
	heading

	Batch200OverByHand          number `json:"batch200_over_by_hand"`
	Batch200VersionedOverByHand number `json:"batch200_versioned_over_by_hand"` // both with hash and version
	Batch200OverCeiling         number `json:"batch200_over_ceiling"`
	Batch200OverBulk            number `json:"batch200_over_bulk"`   // domain rows inserted as a set too
	Batch1OverByHand            number `json:"batch1_over_by_hand"`  // both with hash and version
	Batch1OverIDAlone           number `json:"batch1_over_id_alone"` // ours compares the hash, by hand does not
	HistoryRatio                number `json:"history_ratio"`
	DroppedRatio                number `json:"history_dropped_ratio"`

	evidence
}

func (b *inboxBench) report(f facts, quick bool, took time.Duration) *inboxReport {
	ratio := func(a, of string) []float64 { return ratios(b.sheet.rounds(a), b.sheet.rounds(of)) }
	median := func(a, of string) number { return summarise(ratio(a, of)).Median }
	goals := []goal{
		newGoal("batch200_over_by_hand", "batch 200 over by hand, 12 partitions", "x", atLeast, 5,
			ratio("rate.12.batch200", "rate.12.hand")),
		newGoal("batch200_versioned_over_by_hand", "the same, both with hash and version", "x", atLeast, 5,
			ratio("rate.12.batch200_versioned", "rate.12.hand_checked")),
		newGoal("batch200_over_ceiling", "batch 200 over the ceiling, 12 partitions", "", atLeast, 0.6,
			ratio("rate.12.batch200", "rate.12.ceiling")),
		newGoal("batch1_over_by_hand", "batch 1 over by hand, both hash and version", "", atLeast, 0.85,
			ratio("rate.12.batch1_versioned", "rate.12.hand_checked")),
		newGoal("history_ratio", "behind the whole history over none", "", atLeast, 0.9,
			ratio("history.full", "history.plain")),
		newGoal("history_dropped_ratio", "after a day was dropped over none", "", atLeast, 0.9,
			ratio("history.dropped", "history.plain.again")),
	}
	of := func(i int) number { return goals[i].Median }
	return &inboxReport{
		heading:            newHeading("inbox", quick, took, b.plan.Rounds),
		Batch200OverByHand: of(0), Batch200VersionedOverByHand: of(1), Batch200OverCeiling: of(2),
		Batch200OverBulk: median("rate.12.batch200", "rate.12.bulk"),
		Batch1OverByHand: of(3), Batch1OverIDAlone: median("rate.12.batch1", "rate.12.hand"),
		HistoryRatio: of(4), DroppedRatio: of(5),
		evidence: evidence{Goals: goals, Machine: f, Plan: b.plan, Groups: b.sheet.measured()},
	}
}

func (r *inboxReport) parts() (heading, evidence) { return r.heading, r.evidence }

// picture is the report as an SVG.
func (r *inboxReport) picture() []byte {
	c := chart{
		title: "Inbox: ours, by hand on watermill-kafka, and the ceiling",
		note:  pictureNote(r.heading, r.Machine),
		tiles: []tile{
			{format(r.Batch200OverByHand) + " x", "batch 200 over by hand"},
			{percent(r.Batch200OverCeiling), "of the ceiling"},
			{percent(r.Batch1OverByHand), "batch 1 of by hand, same checks"},
			{percent(r.HistoryRatio), "behind the whole history"},
		},
	}
	for _, g := range r.Groups {
		p := panel{title: g.Title, note: g.Note}
		for _, f := range g.Figures {
			p.bars = append(p.bars, bar{label: f.Label, unit: f.Unit, class: inboxClass(f.ID), summary: f.summary})
		}
		c.panels = append(c.panels, p)
	}
	return c.svg()
}

// inboxClass is the colour of a figure's variant.
func inboxClass(id string) string {
	switch {
	case strings.Contains(id, "hand"):
		return "stock"
	case strings.HasSuffix(id, "ceiling"), strings.HasSuffix(id, "bulk"):
		return "other"
	}
	return "ours"
}
