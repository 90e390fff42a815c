package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// chart is horizontal bars in panels, drawn as an SVG that needs nothing else and reads on light and dark pages.
type chart struct {
	title, note string
	tiles       []tile
	panels      []panel
}

// tile is one headline: a large number and what it is.
type tile struct{ value, label string }

// width is about how wide the tile's text is drawn: a browser knows its font, this does not.
func (t tile) width() int { return max(14*len(t.value), 13*len(t.label)/2) }

// panel is bars on one scale, from zero.
type panel struct {
	title, note string
	bars        []bar
}

// bar is one figure. Its class gives the colour: the same variant has the same one in every panel.
type bar struct {
	label, unit, class string
	summary
}

const (
	chartWidth  = 860
	margin      = 24
	barsFrom    = 330
	barsTo      = 690
	rowHeight   = 24
	barHeight   = 14
	panelHead   = 50
	panelGap    = 18
	tilesHeight = 74
	tileGap     = 28
	headHeight  = 66
)

const style = `<style>
text{font:13px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#57606a}
.h{font-size:20px;font-weight:600;fill:#24292f}.t{font-size:15px;font-weight:600;fill:#24292f}
.n{font-size:12px}.b{font-size:24px;font-weight:600;fill:#1a7f74}.v{fill:#24292f}
.ours{fill:#2a9d8f}.stock{fill:#b5838d}.other{fill:#8d99ae}
.w{stroke:#24292f;stroke-width:1.2;opacity:.55}.a{stroke:#8d99ae;stroke-width:1;opacity:.5}
@media (prefers-color-scheme:dark){text{fill:#9aa4ae}.h,.t,.v{fill:#e6edf3}.b{fill:#4fd1c1}.w{stroke:#e6edf3}}
</style>
`

// svg draws the chart. The same chart gives the same bytes.
func (c chart) svg() []byte {
	var body bytes.Buffer
	y := margin
	text(&body, margin, y+20, "h", "start", c.title)
	text(&body, margin, y+42, "n", "start", c.note)
	y += headHeight
	if len(c.tiles) > 0 {
		x := margin
		for _, t := range c.tiles {
			text(&body, x, y+26, "b", "start", t.value)
			text(&body, x, y+46, "n", "start", t.label)
			x += t.width() + tileGap
		}
		y += tilesHeight
	}
	for _, p := range c.panels {
		y = p.draw(&body, y) + panelGap
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`,
		chartWidth, y, chartWidth, y)
	fmt.Fprintf(&out, "\n<title>%s</title>\n%s", html.EscapeString(c.title), style)
	out.Write(body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// draw returns where the panel ends.
func (p panel) draw(w *bytes.Buffer, y int) int {
	text(w, margin, y+16, "t", "start", p.title)
	text(w, margin, y+34, "n", "start", p.note)
	y += panelHead
	longest := number(0)
	for _, b := range p.bars {
		longest = max(longest, b.Max, b.Median)
	}
	for i, b := range p.bars {
		b.draw(w, y+i*rowHeight, longest)
	}
	end := y + len(p.bars)*rowHeight
	fmt.Fprintf(w, "<line class=\"a\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", barsFrom, y-3, barsFrom, end-3)
	return end
}

func (b bar) draw(w *bytes.Buffer, y int, longest number) {
	at := func(n number) float64 {
		v := float64(n / longest)
		if longest <= 0 || math.IsNaN(v) {
			return barsFrom
		}
		return math.Round(10*(barsFrom+v*(barsTo-barsFrom))) / 10
	}
	middle := y + barHeight/2 + 2
	text(w, barsFrom-10, middle+5, "", "end", b.label)
	fmt.Fprintf(w, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%g\" height=\"%d\" rx=\"2\"/>\n", b.class, barsFrom,
		middle-barHeight/2, max(at(b.Median)-barsFrom, 1), barHeight)
	if b.Max > b.Min {
		fmt.Fprintf(w, "<path class=\"w\" d=\"M%g %dH%gM%g %dv6M%g %dv6\"/>\n", at(b.Min), middle, at(b.Max),
			at(b.Min), middle-3, at(b.Max), middle-3)
	}
	text(w, int(at(max(b.Max, b.Median)))+8, middle+5, "v", "start", format(b.Median)+" "+b.unit)
}

func text(w *bytes.Buffer, x, y int, class, anchor, content string) {
	if content == "" {
		return
	}
	if class != "" {
		class = fmt.Sprintf(` class="%s"`, class)
	}
	fmt.Fprintf(w, "<text%s x=\"%d\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", class, x, y, anchor,
		html.EscapeString(content))
}
