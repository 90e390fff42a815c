package demo

import (
	"context"
	"errors"
	"fmt"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

// Duplicates repeats requests with their keys, and publishes the events again.
func Duplicates() Fault {
	return Fault{
		Name: "duplicates", What: "requests are repeated, and all events so far are published again",
		Cause: func(ctx context.Context, run *Run) (string, error) {
			const requests = 20
			repeated := run.some(requests)
			for n, id := range repeated {
				again, err := run.cfg.Act(ctx, n)
				if err != nil {
					return "", fmt.Errorf("repeat a request: %w", err)
				}
				if again != id {
					return "", errors.New("a request that was repeated had another answer")
				}
			}
			published := int64(0)
			for _, s := range run.cfg.Services {
				result, err := client.Stream(ctx, s, func(int64, int64) {}, client.Post("/admin/v1/outbox/republish",
					adminapi.RepublishRequest{By: "demo", Reason: "duplicates on request", Since: run.began}))
				if err != nil {
					return "", fmt.Errorf("publish again: %w", err)
				}
				published += result.Count
			}
			return fmt.Sprintf("%d requests have their first answer again; %d events were published again",
				len(repeated), published), nil
		},
	}
}

// Poison sends an event that no consumer can handle.
func Poison(cfg kafka.Config, brew func() (event.Event, error)) Fault {
	return Fault{
		Name: "poison", What: "an event with an unreadable payload is sent to the topic",
		Cause: func(context.Context, *Run) (string, error) {
			e, err := brew()
			if err != nil {
				return "", err
			}
			publisher, err := kafka.NewPublisher(cfg, nil)
			if err != nil {
				return "", err
			}
			if err := errors.Join(publisher.Publish(e.Topic, e.Message()), publisher.Close()); err != nil {
				return "", err
			}
			return "each consumer makes a dead letter of it: twinbox dlq list", nil
		},
	}
}
