package main

import "strings"

// pictured are the groups of the picture: speed and latency. What an event costs is in the table.
var pictured = []string{"drain.", "signup.", "latency.", "history."}

// picture is the report as an SVG.
func (r *relayReport) picture() []byte {
	c := chart{
		title: "Outbox relay: ours, Watermill's own, and the ceiling",
		note:  pictureNote(r.heading, r.Machine),
		tiles: []tile{
			{format(r.OursOverStock) + " x", "drain rate over stock"},
			{percent(r.OursOverCeiling), "of the ceiling"},
			{format(r.P50) + " / " + format(r.P99) + " ms", "commit to ack p50 / p99 at 1,000/s"},
			{percent(r.SignupRatio8), "of the signups/s without outbox"},
		},
	}
	for _, g := range r.Groups {
		if p := panelOf(g); len(p.bars) > 0 {
			c.panels = append(c.panels, p)
		}
	}
	return c.svg()
}

func percent(n number) string { return format(100*n) + " %" }

func panelOf(g *group) panel {
	p := panel{title: g.Title, note: g.Note}
	for _, f := range g.Figures {
		if !isPictured(f.ID) {
			continue
		}
		label, _, _ := strings.Cut(f.Label, ":")
		p.bars = append(p.bars, bar{label: label, unit: f.Unit, class: classOf(f.ID), summary: f.summary})
	}
	return p
}

func isPictured(id string) bool {
	for _, suffix := range []string{".due50", ".due99", ".published"} {
		if strings.HasSuffix(id, suffix) {
			return false
		}
	}
	for _, prefix := range pictured {
		if strings.HasPrefix(id, prefix) {
			return true
		}
	}
	return false
}

// classOf finds the variant in a figure's id.
func classOf(id string) string {
	switch {
	case strings.Contains(id, "ours"), strings.Contains(id, "watermill"),
		strings.HasPrefix(id, "history.") && id != "history.stalled":
		return "ours"
	case strings.Contains(id, "stock"), strings.Contains(id, "keen"), id == "history.stalled":
		return "stock"
	}
	return "other"
}
