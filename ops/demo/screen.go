package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Screen is where a demonstration is drawn.
type Screen struct {
	Out io.Writer
	// Live says that it is a terminal of 80 columns or more: the flow is drawn over and over in its place. Elsewhere it
	// is a line every two seconds.
	Live bool
	// Colour allows escape sequences for colours.
	Colour bool
}

// Columns is how wide a terminal must be for the live picture.
const Columns = 80

// columns is what is drawn at most: a line that is full moves the cursor on some terminals.
const columns = Columns - 1

// plainEvery is how often a line is written without a terminal.
const plainEvery = 2 * time.Second

type screen struct {
	Screen

	mu    sync.Mutex
	drawn int               // lines of the picture that is to be drawn over
	last  time.Time         // of a line without a terminal
	said  map[string]string // the causes that were told there, by service
	err   error             // of the first write that failed
}

func newScreen(cfg Config) *screen { return &screen{Screen: cfg.Screen, last: time.Now()} }

const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (s *screen) paint(style, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// write replaces the picture by lines that stay, and by a new picture.
func (s *screen) write(stay string, picture []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", s.drawn)
	}
	b.WriteString(stay)
	for _, line := range picture {
		b.WriteString(line + "\n")
	}
	s.drawn = len(picture)
	if _, err := io.WriteString(s.Out, b.String()); err != nil && s.err == nil {
		s.err = err // the reader is gone; the demo goes on
	}
}

// say writes a line that stays, with when it was.
func (r *Run) say(format string, args ...any) {
	when := fmt.Sprintf("%6.1f s  ", time.Since(r.began).Seconds())
	lines := wrap(strings.TrimRight(fmt.Sprintf(format, args...), " "), columns-len(when))
	var stay strings.Builder
	for i, line := range lines {
		if i > 0 {
			when = strings.Repeat(" ", len(when))
		}
		stay.WriteString(r.screen.paint(dim, when) + line + "\n")
	}
	var picture []string
	if r.screen.Live {
		picture = r.picture()
	}
	r.screen.write(stay.String(), picture)
}

// show draws the flow. What is drawn at the end stays.
func (r *Run) show(end bool) {
	if r.screen.Live {
		stay := ""
		picture := r.picture()
		if end {
			stay, picture = strings.Join(picture, "\n")+"\n", nil
		}
		r.screen.write(stay, picture)
		return
	}
	said := map[string]string{}
	for _, c := range r.figures.now().causes {
		if said[c.service] = c.code; r.screen.said[c.service] != c.code {
			r.say("%s", cut(c.String(), 2*columns))
		}
	}
	r.screen.said = said
	if end || time.Since(r.screen.last) >= plainEvery {
		r.screen.last = time.Now()
		r.say("%s", r.line())
	}
}

// line is the flow in one line.
func (r *Run) line() string {
	now := r.figures.now()
	made, _ := r.crowd.counts()
	text := fmt.Sprintf("%d %s, %d published, %d handled", made, r.cfg.Acted, now.counted[published], now.counted[handled])
	if n := now.counted[duplicate]; n > 0 {
		text += fmt.Sprintf(" (%d duplicates skipped)", n)
	}
	text += fmt.Sprintf(", %d mails, %d waiting", now.counted[mailed], now.total())
	if now.unsure > 0 {
		text += fmt.Sprintf(", %d mails uncertain", now.unsure)
	}
	if now.dead > 0 {
		text += fmt.Sprintf(", %d dead letters", now.dead)
	}
	return text
}

// picture is the flow as a person sees it live.
func (r *Run) picture() []string {
	now := r.figures.now()
	made, refused := r.crowd.counts()
	paint := r.screen.paint
	row := func(name string, n int, style, more string) string {
		return "  " + paint(dim, fmt.Sprintf("%-14s", name)) + paint(style, fmt.Sprintf("%8d", n)) + "   " + paint(dim, more)
	}
	again := ""
	if refused > 0 {
		again = fmt.Sprintf("%d requests in vain, and repeated", refused)
	}
	skipped := ""
	if n := now.counted[duplicate]; n > 0 {
		skipped = fmt.Sprintf("and %d duplicates skipped", n)
	}
	unsure := ""
	if now.unsure > 0 {
		unsure = fmt.Sprintf("and %d uncertain: handed over when their sender died", now.unsure)
	}
	letters, waits := "0", green
	if now.dead > 0 {
		letters = yellow
	}
	if now.total() > 0 {
		waits = yellow
	}
	lines := []string{
		"",
		r.progress(),
		"",
		row(r.cfg.Acted, made, bold, again),
		row("published", now.counted[published], bold, ""),
		row("handled", now.counted[handled], bold, skipped),
		row("mails sent", now.counted[mailed], bold, unsure),
		row("waiting", now.total(), waits, "") + paint(cyan, sparks(now.history)),
		row("dead letters", now.dead, letters, ""),
		"",
	}
	for _, cause := range now.causes {
		lines = append(lines, "  "+paint(yellow, cut(cause.String(), columns-2)))
	}
	return lines
}

// progress is how much of the time is over.
func (r *Run) progress() string {
	const width = 40
	over := min(time.Since(r.began), r.cfg.For)
	done := int(float64(width) * over.Seconds() / max(r.cfg.For.Seconds(), 0.001))
	return "  " + r.screen.paint(cyan, strings.Repeat("━", done)) + r.screen.paint(dim, strings.Repeat("━", width-done)) +
		fmt.Sprintf("  %.0f of %.0f s, %g a second", over.Seconds(), r.cfg.For.Seconds(), r.cfg.Rate)
}

// sparks draws the last values as bars, the highest of them full.
func sparks(values []float64) string {
	const most = 40
	bars := []rune("▁▂▃▄▅▆▇█")
	values = values[max(0, len(values)-most):]
	top := 1.0
	for _, v := range values {
		top = max(top, v)
	}
	var drawn strings.Builder
	for _, v := range values {
		drawn.WriteRune(bars[int(v/top*float64(len(bars)-1))])
	}
	return drawn.String()
}

// cut leaves of a text what fits.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// wrap breaks a text into lines, between words.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.SplitAfter(text, " ") {
		if line != "" && utf8.RuneCountInString(line)+utf8.RuneCountInString(strings.TrimRight(word, " ")) > width {
			lines, line = append(lines, strings.TrimRight(line, " ")), ""
		}
		line += word
	}
	return append(lines, strings.TrimRight(line, " "))
}
