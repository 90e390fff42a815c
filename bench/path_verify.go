package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/notification"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/verify"
)

// Nothing may be lost, doubled, altered, invented or reordered, and all could be verified.
func (l *ourLine) verify(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, arriveLimit, errors.New("offsets are not committed"))
	defer cancel()
	var signups int64
	for _, of := range []func(context.Context) (verify.Config, error){l.ofCustomer, l.ofNotification} {
		cfg, err := of(ctx)
		if err != nil {
			return err
		}
		verdict, err := verdictOf(ctx, cfg)
		if err != nil {
			return err
		}
		for _, f := range verdict.Findings {
			err = errors.Join(err, fmt.Errorf("%s, %s of %s, event %s: %s", f.Kind, f.Rule, f.Subject, f.EventID, f.Detail))
		}
		for _, u := range verdict.Unverifiable {
			err = errors.Join(err, fmt.Errorf("%d of %s not verifiable: %s", u.Events, u.Subject, u.Reason))
		}
		if err != nil {
			return err
		}
		for _, topic := range verdict.Produced {
			if topic.Topic == contract.TopicUsers {
				signups += topic.Published
			}
		}
		for _, consumer := range verdict.Consumed {
			signups -= consumer.Handled - consumer.Again
		}
	}
	if signups != 0 {
		return fmt.Errorf("%d more events published than handled", signups)
	}
	return nil
}

// ofCustomer is what the bench runs of Customer: it has no consumers here.
func (l *ourLine) ofCustomer(ctx context.Context) (verify.Config, error) {
	cfg, err := l.verified(ctx, customer.Service.Describe(), l.customer)
	cfg.Consumers = nil
	return cfg, err
}

func (l *ourLine) ofNotification(ctx context.Context) (verify.Config, error) {
	return l.verified(ctx, notification.Service.Describe(), l.notification, "SMTP_ADDR=127.0.0.1:25")
}

func (l *ourLine) verified(
	ctx context.Context, described eventing.Described, db *database, more ...string,
) (verify.Config, error) {
	instance, err := described.Load(l.environ(db, more...))
	if err != nil {
		return verify.Config{}, fmt.Errorf("configure %s: %w", described.Name, err)
	}
	cfg := verify.Config{Kafka: instance.Client("bench")}
	cfg.Service, err = instance.Verified(ctx)
	cfg.Checks = nil
	return cfg, err
}

func verdictOf(ctx context.Context, cfg verify.Config) (*verify.Verdict, error) {
	for {
		verdict, err := verify.Run(ctx, cfg)
		if err != nil {
			return nil, fmt.Errorf("verify: %w", err)
		}
		waiting := int64(0)
		for _, topic := range verdict.Produced {
			waiting += topic.Waiting + topic.Held
		}
		for _, consumer := range verdict.Consumed {
			waiting += consumer.Pending
		}
		if waiting == 0 {
			return verdict, nil
		}
		if err := failure.Sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}
