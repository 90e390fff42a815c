package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/customer/openapi"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/notification"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
)

// ourLine is the two services with their default settings, but without the HTTP API, Customer's own consumers and the
// mail sender. Each has its admin listener, its metrics and a log that is discarded.
type ourLine struct {
	site
	arrived func(user string)

	open     chan struct{}
	commands *customer.Commands
}

func openOurLine(_ context.Context, at site, arrived func(user string)) (line, error) {
	return &ourLine{site: at, arrived: arrived, open: make(chan struct{})}, nil
}

func (l *ourLine) run(ctx context.Context) error {
	return together(ctx,
		func(ctx context.Context) error {
			return serve(ctx, customer.Service, l.environ(l.customer, "HTTP_ADDR=127.0.0.1:0"), l.setUpCustomer)
		},
		func(ctx context.Context) error {
			environ := l.environ(l.notification, "SMTP_ADDR=127.0.0.1:25") // it sends no mail
			return serve(ctx, notification.Service, environ, l.setUpNotification)
		})
}

const benchSecret = "a secret of a benchmark, which is public"

func (s site) environ(db *database, more ...string) []string {
	return append([]string{
		"DATABASE_URL=" + db.dsn, "KAFKA_BROKERS=" + strings.Join(s.brokers, ","), "ENVIRONMENT=bench",
		"VERIFICATION_SECRET=" + benchSecret, "ADMIN_ADDR=127.0.0.1:0",
	}, more...)
}

func serve[C eventing.Settings](
	ctx context.Context, s eventing.Service[C], environ []string, setUp func(*eventing.Node, C) error,
) error {
	var cfg C
	if err := config.Load(environ, &cfg); err != nil {
		return err
	}
	s.SetUp, s.Operations = setUp, nil
	return s.Run(ctx, cfg, service.Host{Log: slog.New(slog.DiscardHandler)})
}

func (l *ourLine) setUpCustomer(node *eventing.Node, cfg customer.Config) error {
	l.commands = &customer.Commands{
		Pool: node.Pool, Outbox: node.Outbox, Links: domain.VerificationKey(cfg.VerificationSecret),
		KeysFor: cfg.IdempotencyTTL, Timeout: cfg.RequestTimeout,
	}
	node.Go("open", func(ctx context.Context) error {
		close(l.open)
		<-ctx.Done()
		return nil
	})
	return nil
}

func (l *ourLine) setUpNotification(node *eventing.Node, _ notification.Config) error {
	return node.Consume(eventing.Consumer{
		Name: "notification.users", Topic: contract.TopicUsers, Handlers: notification.UserEvents(), Order: inbox.Strict,
		OnOutcome: func(e event.Event, outcome inbox.Outcome) {
			if outcome == inbox.Applied {
				l.arrived(e.Key)
			}
		},
	})
}

func (l *ourLine) signUp(ctx context.Context, n int) (user string, err error) {
	select {
	case <-l.open:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	answer, err := l.commands.SignUp(ctx, customer.Signup{
		Key: strconv.Itoa(n), Email: domain.Email(email(n)), Name: visitor,
	})
	if err != nil {
		return "", err
	}
	var body openapi.SignupResponse
	if err := json.Unmarshal(answer.Body, &body); err != nil {
		return "", fmt.Errorf("read answer: %w", err)
	}
	return body.UserId, nil
}
