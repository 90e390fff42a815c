package local

import (
	"fmt"
	"io"
	"strings"
	"time"
)

type summary struct {
	at       Addresses
	programs []Program
	dir      string
	took     time.Duration
}

func (s summary) write(out io.Writer) {
	var b strings.Builder
	took := s.took.Round(time.Millisecond).String()
	fmt.Fprintf(&b, "\n  twinbox is ready after %s\n\n", took)
	for _, row := range s.rows() {
		fmt.Fprintf(&b, "  %-18s  %s\n", row[0], row[1])
	}
	b.WriteString("\n")
	writeSignUp(&b, s.at)
	b.WriteString("  Ctrl-C stops everything; the data stays for the next start.\n\n")
	_, _ = io.WriteString(out, b.String()) // a screen that is gone stops nothing
}

func (s summary) rows() (rows [][2]string) {
	for _, p := range s.programs {
		rows = append(rows, [2]string{p.Title, s.at.Programs[p.Name]})
		if p.Note != "" {
			rows = append(rows, [2]string{"", p.Note})
		}
	}
	for _, name := range s.at.Names {
		if api := s.at.Services[name].API; api != "" {
			rows = append(rows, [2]string{title(name) + " API", "http://" + Reachable(api) + "/openapi.json"})
		}
	}
	rows = append(rows, [2]string{"Mailbox", "http://" + s.at.Mailbox})
	for _, name := range s.at.Names {
		rows = append(rows, [2]string{title(name) + " admin", "http://" + Reachable(s.at.Services[name].Admin) + "/readyz"})
	}
	return append(rows, [2]string{"Kafka", s.at.KafkaBrokers}, [2]string{"SMTP", s.at.SMTP},
		[2]string{"State and logs", s.dir})
}
