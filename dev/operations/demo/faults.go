package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"example.com/twinbox/internal/contract"
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
			repeated := 0
			for n, id := range run.signedUp() {
				again, err := run.people.signUp(ctx, n)
				if err != nil {
					return "", fmt.Errorf("repeat a request: %w", err)
				}
				if again != id {
					return "", errors.New("a request that was repeated had another answer")
				}
				if repeated++; repeated == requests {
					break
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
				repeated, published), nil
		},
	}
}

// Poison sends a registration without a user, which no consumer can handle.
func Poison(brokers []string) Fault {
	return Fault{
		Name: "poison", What: "an event with an unreadable payload is sent to the topic",
		Cause: func(context.Context, *Run) (string, error) {
			publisher, err := kafka.NewPublisher(kafka.Config{Brokers: brokers}, nil)
			if err != nil {
				return "", err
			}
			e := newPoison()
			if err := errors.Join(publisher.Publish(e.Topic, e.Message()), publisher.Close()); err != nil {
				return "", err
			}
			return "each consumer makes a dead letter of it: twinbox dlq list", nil
		},
	}
}

func newPoison() event.Event {
	d := contract.UserRegistered.Declaration
	return event.Event{
		ID: uuid.Must(uuid.NewV7()).String(), Source: "/demo", Type: d.Type, Topic: d.Topic, DataSchema: d.DataSchema,
		Key: uuid.NewString(), Version: 1, Time: time.Now().UTC(), Data: []byte(`{"poison":true}`),
	}
}
