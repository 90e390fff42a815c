package local

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// summary is what a start ends with.
type summary struct {
	at     Addresses
	dir    string
	took   time.Duration
	colour bool
}

// curl is the line to copy: a sign-up, as it is written in the README.
const curl = `curl -XPOST %s/v1/signups -H 'content-type: application/json' ` +
	`-d '{"email":"ada@example.org","name":"Ada"}'`

func (s summary) write(out io.Writer) {
	var b strings.Builder
	took := s.took.Round(time.Millisecond).String()
	fmt.Fprintf(&b, "\n  %s %s\n\n", s.paint(bold, "twinbox"), s.paint(dim, "is ready after "+took))
	for _, row := range [][2]string{
		{"Customer API", "http://" + reachable(s.at.CustomerAPI)},
		{"Mailbox", "http://" + s.at.Mailbox},
		{"Customer admin", "http://" + reachable(s.at.CustomerAdmin) + "/readyz"},
		{"Notification admin", "http://" + reachable(s.at.NotificationAdmin) + "/readyz"},
		{"Kafka", s.at.KafkaBrokers},
		{"SMTP", s.at.SMTP},
		{"State and logs", s.dir},
	} {
		fmt.Fprintf(&b, "  %s  %s\n", s.paint(dim, fmt.Sprintf("%-18s", row[0])), row[1])
	}
	fmt.Fprintf(&b, "\n  Sign somebody up:\n\n    %s\n", s.paint(accent, fmt.Sprintf(curl, reachable(s.at.CustomerAPI))))
	fmt.Fprintf(&b, "\n  The mail appears at %s within a moment; its link verifies the address.\n", "http://"+s.at.Mailbox)
	fmt.Fprintf(&b, "  %s\n\n", s.paint(dim, "Ctrl-C stops everything; the data stays for the next start."))
	_, _ = io.WriteString(out, b.String()) // a screen that is gone stops nothing
}

const (
	bold   = "1"
	dim    = "2"
	accent = "36"
)

func (s summary) paint(style, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}
