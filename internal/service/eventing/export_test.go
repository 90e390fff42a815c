package eventing

import (
	"time"

	"example.com/twinbox/internal/outbox/relay"
)

// PollHourly gives the node a relay that differs from the configured one in its poll and
// its lease alone. The configured one polls a table that was just busy every few
// milliseconds, with any OUTBOX_POLL; all that this one publishes within a test's
// patience it was woken for. Call it before Run.
func (n *Node) PollHourly() (err error) {
	cfg := n.relayConfig()
	cfg.PollMin, cfg.PollMax, cfg.Lease = time.Hour, time.Hour, 4*time.Hour
	cfg.Registerer = nil // the metrics are the first relay's
	n.relay, err = relay.New(cfg)
	return err
}

// FlushLog writes what the log holds back.
func (n *Node) FlushLog() { n.limited.Flush() }
