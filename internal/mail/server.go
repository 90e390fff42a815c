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
	// idleProbe is how often the mail server is asked while no mail finds fault with it.
	idleProbe = 5 * time.Minute
	// awayProbe is the longest pause between two probes of a mail server that is away, and so how late its return is
	// noticed.
	awayProbe = 10 * time.Second
)

// NewCircuit is what is known of the mail server: a mail that it does not take begins a probe, and the probe
// decides. Its silence is known after SMTP_TIMEOUT at the latest: a third of it for the mail to find out, another one
// for the probe.
func NewCircuit(sender *Sender, log *slog.Logger, registerer prometheus.Registerer) *circuit.Circuit {
	return circuit.New(circuit.Config{
		Name: "mail server", Probe: sender.probe, Timeout: sender.Config.Timeout, Every: idleProbe,
		RetryMin: time.Second, RetryMax: awayProbe, Log: log, Registerer: registerer,
	})
}

// probe goes as far as every mail has to go: connection, TLS, login and the sender's address. It names no recipient and
// leaves nothing behind. Mails that were just refused behind that point for what concerns all count as well: the sender
// tries one of them every few seconds. That this one stopped hearing of them, since another instance has sent them, is
// known after awayProbe.
func (s *Sender) probe(ctx context.Context) error {
	from, err := mail.ParseAddress(s.From)
	if err != nil {
		return fmt.Errorf("mail from: %w", err)
	}
	from.Name = ""
	ctx, cancel := context.WithTimeout(ctx, s.Config.Timeout)
	defer cancel()
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
