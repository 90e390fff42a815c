package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"
)

const (
	chartWidth  = 860
	margin      = 24
	barsFrom    = 330
	barsTo      = 690
	rowHeight   = 24
	barHeight   = 14
	panelHead   = 50
	panelGap    = 18
	titleHeight = 46
	lineHeight  = 18
)

const style = `<style>
text{font:13px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#57606a}
.h{font-size:20px;font-weight:600;fill:#24292f}.t{font-size:15px;font-weight:600;fill:#24292f}
.n{font-size:12px}.v{fill:#24292f}
.ours{fill:#2a9d8f}.stock{fill:#b5838d}.other{fill:#8d99ae}
.w{stroke:#24292f;stroke-width:1.2;opacity:.55}.a{stroke:#8d99ae;stroke-width:1;opacity:.5}
@media (prefers-color-scheme:dark){text{fill:#9aa4ae}.h,.t,.v{fill:#e6edf3}.w{stroke:#e6edf3}}
</style>
`

// drawSVG needs no other file, and its picture reads on light and dark pages. Each group has a panel. The same input
// gives the same bytes.
func drawSVG(title string, lines []string, groups []*group) []byte {
	var body bytes.Buffer
	y := margin
	text(&body, margin, y+20, "h", "start", title)
	y += titleHeight
	for _, line := range lines {
		text(&body, margin, y, "n", "start", line)
		y += lineHeight
	}
	for _, g := range groups {
		y = g.draw(&body, y) + panelGap
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`,
		chartWidth, y, chartWidth, y)
	fmt.Fprintf(&out, "\n<title>%s</title>\n%s%s</svg>\n", html.EscapeString(title), style, &body)
	return out.Bytes()
}

func (g *group) draw(w *bytes.Buffer, y int) int {
	text(w, margin, y+16, "t", "start", g.Title)
	text(w, margin, y+34, "n", "start", g.Note)
	y += panelHead
	longest := number(0)
	for _, f := range g.Figures {
		longest = max(longest, f.Max)
	}
	for i, f := range g.Figures {
		f.draw(w, y+i*rowHeight, longest)
	}
	end := y + len(g.Figures)*rowHeight
	fmt.Fprintf(w, "<line class=\"a\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", barsFrom, y-3, barsFrom, end-3)
	return end
}

func (f *figure) draw(w *bytes.Buffer, y int, longest number) {
	at := func(n number) float64 {
		if longest <= 0 {
			return barsFrom
		}
		return math.Round(10*(barsFrom+float64(n/longest)*(barsTo-barsFrom))) / 10
	}
	middle := y + barHeight/2 + 2
	text(w, barsFrom-10, middle+5, "l", "end", f.Label)
	fmt.Fprintf(w, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%g\" height=\"%d\" rx=\"2\"/>\n", colourOf(f.ID),
		barsFrom, middle-barHeight/2, max(at(f.Median)-barsFrom, 1), barHeight)
	if f.Max > f.Min {
		fmt.Fprintf(w, "<path class=\"w\" d=\"M%g %dH%gM%g %dv6M%g %dv6\"/>\n", at(f.Min), middle, at(f.Max),
			at(f.Min), middle-3, at(f.Max), middle-3)
	}
	text(w, int(at(f.Max))+8, middle+5, "v", "start", format(f.Median)+" "+f.Unit)
}

func colourOf(id string) string {
	switch {
	case strings.Contains(id, "stock"), strings.Contains(id, "hand"):
		return "stock"
	case strings.Contains(id, "bare"):
		return "other"
	}
	return "ours"
}

func text(w *bytes.Buffer, x, y int, class, anchor, content string) {
	fmt.Fprintf(w, "<text class=\"%s\" x=\"%d\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", class, x, y, anchor,
		html.EscapeString(content))
}
