package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/notification"
)

// stockLine uses Watermill's parts: the Forwarder's publisher in the signup's transaction, the Forwarder, and a Router.
// Its consumer stores the id and runs the service's handler in one transaction per message. It checks no payload and no
// version, and gives up no message.
type stockLine struct {
	site
	outbox    variant
	publisher message.Publisher
	welcome   *inbox.Mux // writes the same rows as ours
	arrived   func(user string)
}

func openStockLine(ctx context.Context, at site, arrived func(user string)) (line, error) {
	if _, err := at.notification.Exec(ctx, byHandInbox); err != nil {
		return nil, fmt.Errorf("create inbox: %w", err)
	}
	outbox, err := newStock(at.customer, keenPoll)
	if err != nil {
		return nil, err
	}
	publisher, err := newStockPublisher(at.brokers)
	if err != nil {
		return nil, errors.Join(err, outbox.close())
	}
	return &stockLine{at, outbox, publisher, notification.UserEvents(), arrived}, nil
}

func (l *stockLine) signUp(ctx context.Context, n int) (user string, err error) {
	user, address := uuid.Must(uuid.NewV7()).String(), email(n)
	registered, data := domain.Register(domain.UserID(user), domain.Email(address), visitor, time.Now().UTC())
	e, err := event.New(contract.UserRegistered, registered.Version, data)
	if err != nil {
		return "", err
	}
	s := signup{key: strconv.Itoa(n), user: user, email: address, event: e}
	return user, s.store(ctx, l.customer.Pool, l.outbox)
}

func (l *stockLine) run(ctx context.Context) error {
	err := together(ctx,
		func(ctx context.Context) error { return l.outbox.relay(ctx, l.publisher) },
		func(ctx context.Context) error {
			return consumeByHand(ctx, l.brokers, stockGroup, contract.TopicUsers, wkafka.DefaultMarshaler{}, l.handle)
		})
	return errors.Join(err, l.publisher.Close(), l.outbox.close())
}

const stockGroup = "bench.notification.users"

func (l *stockLine) handle(msg *message.Message) error {
	e, err := event.FromMessage(msg)
	if err != nil {
		return err
	}
	isNew := false
	err = pgx.BeginFunc(msg.Context(), l.notification, func(tx pgx.Tx) (err error) {
		if isNew, err = rememberID(msg.Context(), tx, msg); err != nil || !isNew {
			return err
		}
		return l.welcome.Apply(msg.Context(), tx, e)
	})
	if err == nil && isNew {
		l.arrived(e.Key)
	}
	return err
}
