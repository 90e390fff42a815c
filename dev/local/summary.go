package local

import (
	"fmt"
	"io"
	"strings"
	"time"
)

func (h *stack) writeSummary(took time.Duration) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n  twinbox is ready after %s\n\n", took.Round(time.Millisecond))
	for _, row := range h.summaryRows() {
		fmt.Fprintf(&b, "  %-18s  %s\n", row[0], row[1])
	}
	b.WriteString("\n")
	writeSignUp(&b, h.at)
	b.WriteString("  Ctrl-C stops everything; the data stays for the next start.\n\n")
	_, _ = io.WriteString(h.cfg.Out, b.String())
}

func (h *stack) summaryRows() (rows [][2]string) {
	for _, p := range h.cfg.Programs {
		rows = append(rows, [2]string{p.Title, h.at.Programs[p.Name]})
		if p.Note != "" {
			rows = append(rows, [2]string{"", p.Note})
		}
	}
	for _, name := range h.at.Names {
		if api := h.at.Services[name].API; api != "" {
			rows = append(rows, [2]string{title(name) + " API", "http://" + Reachable(api) + "/openapi.json"})
		}
	}
	rows = append(rows, [2]string{"Mailbox", "http://" + h.at.Mailbox},
		[2]string{"", "refuses refuse...@, and hangs up on uncertain...@"})
	for _, name := range h.at.Names {
		rows = append(rows, [2]string{title(name) + " admin", "http://" + Reachable(h.at.Services[name].Admin) + "/readyz"})
	}
	return append(rows, [2]string{"Kafka", h.at.KafkaBrokers}, [2]string{"SMTP", h.at.SMTP},
		[2]string{"State and logs", h.cfg.Dir})
}
