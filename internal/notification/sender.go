package notification

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/fault"
)

// SenderConfig says how eagerly mails are sent.
type SenderConfig struct {
	Workers     int           `env:"WORKERS" envDefault:"4" min:"1" max:"100" doc:"mails sent side by side"`
	Lease       time.Duration `env:"LEASE" envDefault:"1m" min:"1s" max:"1h" doc:"how long a claimed mail is its sender's; must outlast SMTP_TIMEOUT by 5s"`
	Poll        time.Duration `env:"POLL" envDefault:"1s" min:"10ms" max:"1m" doc:"how often to look for mails that nobody announced: retries and other processes' leftovers"`
	MaxAttempts int           `env:"MAX_ATTEMPTS" envDefault:"12" min:"1" max:"1000" doc:"temporary refusals before a mail is given up"`
	RetryMin    time.Duration `env:"RETRY_MIN" envDefault:"5s" min:"10ms" max:"1h" doc:"pause after the first temporary refusal; doubles each time"`
	RetryMax    time.Duration `env:"RETRY_MAX" envDefault:"1h" min:"10ms" max:"24h" doc:"longest pause between attempts"`
}

// Sender takes mails off the list and hands them to the mail server. Any number of senders may run on one list.
type Sender struct {
	cfg    SenderConfig
	list   *list
	writer Writer
	smtp   *smtpSender
	log    *slog.Logger
	mails  *prometheus.CounterVec
	wake   chan struct{}
	cutOff atomic.Bool // the database does not answer, and the log says so
}

func newSender(cfg SenderConfig, l *list, w Writer, s *smtpSender, log *slog.Logger, r prometheus.Registerer) *Sender {
	mails := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "notification_mails_total",
		Help: "Attempts to send a mail, by how they ended.",
	}, []string{"result"})
	r.MustRegister(mails)
	return &Sender{cfg: cfg, list: l, writer: w, smtp: s, log: log, mails: mails, wake: make(chan struct{}, cfg.Workers)}
}

// Wake says that there may be a mail to send. It never blocks; polling finds what a lost wake-up missed.
func (s *Sender) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run sends mails until ctx ends, then finishes the ones under way.
func (s *Sender) Run(ctx context.Context) error {
	var group errgroup.Group
	for range s.cfg.Workers {
		group.Go(func() error { return s.work(ctx) })
	}
	return group.Wait()
}

// work is one worker: while there are mails it sends them, else it waits.
func (s *Sender) work(ctx context.Context) error {
	poll := time.NewTicker(s.cfg.Poll)
	defer poll.Stop()
	for {
		for ctx.Err() == nil {
			if more := s.next(ctx); !more {
				break
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-poll.C:
			s.settle(ctx)
		}
	}
}

// settle marks what vanished senders left behind.
func (s *Sender) settle(ctx context.Context) {
	ids, err := s.list.doubtExpired(ctx)
	s.heard(ctx, err)
	for _, id := range ids {
		s.mails.WithLabelValues("uncertain").Inc()
		s.log.ErrorContext(ctx, "mail is uncertain: its sender vanished while submitting", "mail_id", id)
	}
}

// next sends one mail and reports whether it is worth looking for another at once.
func (s *Sender) next(ctx context.Context) (more bool) {
	m, found, err := s.list.claim(ctx)
	s.heard(ctx, err)
	if !found {
		return false
	}
	fault.Here("notification.mail.claimed")
	// From here on shutdown does not interrupt: a mail half sent would be an uncertain one. The lease bounds it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Lease)
	defer cancel()
	result, err := s.send(ctx, m)
	s.mails.WithLabelValues(result).Inc()
	s.report(ctx, m.ID, m.Attempts, result, err)
	return true
}

// heard says once that the database does not answer, and once that it does again, however many workers ask how often.
func (s *Sender) heard(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && s.cutOff.CompareAndSwap(false, true):
		s.log.WarnContext(ctx, "mail list cannot be reached", "error", err)
	case err == nil && s.cutOff.CompareAndSwap(true, false):
		s.log.InfoContext(ctx, "mail list is back")
	}
}

// send brings a claimed mail to its next state and names it.
func (s *Sender) send(ctx context.Context, m Mail) (result string, err error) {
	letter, err := s.writer.Write(m, time.Now())
	if err != nil {
		return "failed", errors.Join(err, s.list.fail(ctx, m, err.Error()))
	}
	err = s.smtp.submit(ctx, letter, func(ctx context.Context) error {
		err := s.list.submitting(ctx, m, s.smtp.cfg.Timeout)
		fault.Here("notification.mail.submitting")
		return err
	})
	if err != nil {
		return s.unsent(ctx, m, err)
	}
	fault.Here("notification.mail.accepted")
	if err := s.record(ctx, m, time.Now().UTC().Truncate(time.Microsecond)); err != nil {
		return "unrecorded", err
	}
	return "sent", nil
}

// unsent puts a mail where a failed attempt leaves it.
func (s *Sender) unsent(ctx context.Context, m Mail, cause error) (string, error) {
	var submitErr *SubmitError
	switch {
	case !errors.As(cause, &submitErr):
		// Not marked as submitting, so nothing was submitted: the claim runs out by itself.
		return "lost_claim", cause
	case submitErr.verdict == unclear:
		return "uncertain", errors.Join(cause, s.list.doubt(ctx, m, cause.Error()))
	case submitErr.verdict == refused:
		return "failed", errors.Join(cause, s.list.fail(ctx, m, cause.Error()))
	case m.Attempts >= s.cfg.MaxAttempts:
		reason := fmt.Sprintf("given up after %d attempts: %v", m.Attempts, cause)
		return "failed", errors.Join(cause, s.list.fail(ctx, m, reason))
	}
	return "postponed", errors.Join(cause, s.list.release(ctx, m, cause.Error(), s.pause(m.Attempts)))
}

// pause is RetryMin, doubled for every attempt after the first, at most RetryMax.
func (s *Sender) pause(attempts int) time.Duration {
	pause := s.cfg.RetryMin
	for range attempts - 1 {
		if pause *= 2; pause >= s.cfg.RetryMax {
			return s.cfg.RetryMax
		}
	}
	return pause
}

// record tries for as long as the lease lasts: the mail is out, and forgetting it would make it uncertain.
func (s *Sender) record(ctx context.Context, m Mail, at time.Time) error {
	retry := time.NewTicker(100 * time.Millisecond)
	defer retry.Stop()
	for {
		err := s.list.sent(ctx, m, at)
		if err == nil || errors.Is(err, errClaimLost) || ctx.Err() != nil {
			return err
		}
		s.log.WarnContext(ctx, "sent mail not recorded yet", "mail_id", m.ID, "error", err)
		select {
		case <-retry.C:
		case <-ctx.Done():
		}
	}
}

func (s *Sender) report(ctx context.Context, id uuid.UUID, attempt int, result string, err error) {
	attrs := []any{"mail_id", id, "attempt", attempt, "result", result}
	switch {
	case err == nil:
		s.log.InfoContext(ctx, "mail sent", attrs...)
	case result == "postponed":
		s.log.WarnContext(ctx, "mail postponed", append(attrs, "error", err)...)
	default:
		s.log.ErrorContext(ctx, "mail not sent", append(attrs, "error", err)...)
	}
}
