package mail

import (
	"context"
	"fmt"
	"log/slog"
	"net/mail"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/service/circuit"
)

const (
	idleProbe = 5 * time.Minute
	// awayProbe is the longest pause between probes of a failed mail server.
	awayProbe = 10 * time.Second
)

func NewCircuit(sender *Sender, log *slog.Logger, registerer prometheus.Registerer) *circuit.Circuit {
	return circuit.New(circuit.Config{
		Name: "mail server", Probe: sender.probe, Timeout: sender.Config.Timeout, Every: idleProbe,
		RetryMin: time.Second, RetryMax: awayProbe, Log: log, Registerer: registerer,
	})
}

// probe runs the first steps of every mail. A refusal of a later step counts for a while: another instance may have
// sent mails.
func (s *Sender) probe(ctx context.Context) error {
	from, err := mail.ParseAddress(s.From)
	if err != nil {
		return fmt.Errorf("mail from: %w", err)
	}
	from.Name = ""
	conn := newConnection(ctx)
	defer conn.hangUp()
	client, err := s.newClient(conn)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := session.Mail(from.String()); err != nil {
		return fmt.Errorf("mail from: %w", err)
	}
	if err := session.Reset(); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	_ = session.Text.PrintfLine("QUIT")
	if last := s.refusal.Load(); last != nil && time.Since(last.at) < awayProbe {
		return last.err
	}
	return nil
}
