package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
)

// member is the part of the payload that the domain keeps.
type member struct {
	Number int64  `json:"number"`
	Email  string `json:"email"`
}

const insertEffectSQL = `insert into effect (event_id, number, email) values ($1, $2, $3)`

// registered is the typed handler of ours: one write whose answer it does not need.
func registered(ctx context.Context, tx pgx.Tx, e event.Event, m member) error {
	return inbox.Queue(ctx, tx, insertEffectSQL, e.ID, m.Number, m.Email)
}

// ourInbox is wired as package eventing does it; its log's text goes nowhere, and there is no contract.
func ourInbox(batch int, versioned bool) func(context.Context, *consumption) error {
	return func(ctx context.Context, c *consumption) error {
		mux, order := inbox.NewMux(), inbox.Unordered
		if versioned {
			order = inbox.Strict
		}
		inbox.Handle(mux, event.Define[member](event.Declaration{Type: eventType}), registered)
		log := slog.New(slog.NewJSONHandler(io.Discard, nil)) //nolint:sloglint // the cost of a line is measured too
		box, err := inbox.New(inbox.Config{
			Consumer: inboxConsumer, Group: c.group, Pool: c.pool, Accepts: mux.Accepts, Order: order, Batch: batch, Log: log,
			Registerer: prometheus.NewRegistry(),
		})
		if err != nil {
			return err
		}
		handle := box.BatchMiddleware(mux.HandleMessage)
		consumer, err := kafka.NewConsumer(kafka.ConsumerConfig{
			Config: kafka.Config{Brokers: c.brokers}, Group: c.group, DrainTimeout: 10 * time.Second, Batch: batch,
		}, func(ctx context.Context, msgs []*message.Message) (int, error) {
			c.begin()
			handled, err := handle(ctx, msgs)
			for _, msg := range msgs[:handled] {
				origin, _ := event.OriginFrom(msg.Context())
				c.handled.note(place{origin.Partition, origin.Offset})
			}
			return handled, err
		}, log)
		if err != nil {
			return err
		}
		err = consumer.Run(ctx, c.topic)
		return errors.Join(err, box.Close(context.WithoutCancel(ctx)))
	}
}

// consumeIDs is by hand with the id alone.
func consumeIDs(ctx context.Context, c *consumption) error { return c.byHand(ctx, c.rememberID) }

// consumeChecked adds what a strict consumer of ours checks, in the same tables.
func consumeChecked(ctx context.Context, c *consumption) error {
	return c.byHand(ctx, c.rememberChecked)
}

// byHand reads the records with the Marshaler of ours, and prepares its statements with pgx.
func (c *consumption) byHand(
	ctx context.Context, remember func(context.Context, pgx.Tx, *message.Message) (isNew bool, err error),
) error {
	return consumeByHand(ctx, c.brokers, c.group, c.topic, kafka.Marshaler{}, func(msg *message.Message) error {
		c.begin()
		var m member
		if err := json.Unmarshal(msg.Payload, &m); err != nil {
			return fmt.Errorf("decode member: %w", err)
		}
		ctx := msg.Context()
		err := pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
			isNew, err := remember(ctx, tx, msg)
			if err != nil || !isNew {
				return err
			}
			_, err = tx.Exec(ctx, insertEffectSQL, msg.UUID, m.Number, m.Email)
			return err
		})
		if err == nil {
			c.handled.note(placeOf(msg))
		}
		return err
	})
}

func placeOf(msg *message.Message) (at place) {
	at.partition, _ = wkafka.MessagePartitionFromCtx(msg.Context())
	at.offset, _ = wkafka.MessagePartitionOffsetFromCtx(msg.Context())
	return at
}

const insertByHand = `insert into by_hand_inbox (consumer, event_id) values ($1, $2) on conflict do nothing`

func (*consumption) rememberID(ctx context.Context, tx pgx.Tx, msg *message.Message) (isNew bool, err error) {
	tag, err := tx.Exec(ctx, insertByHand, inboxConsumer, msg.UUID)
	return tag.RowsAffected() == 1, err
}

const (
	insertChecked = `
insert into inbox (consumer, event_id, event_time, event_type, payload_hash, metadata)
values ($1, $2, $3, $4, $5, $6) on conflict do nothing`
	selectChecked = `select payload_hash from inbox where consumer = $1 and event_id = $2 and event_time = $3`
	moveKey       = `
insert into inbox_key as k (consumer, key, version)
select $1, $2, $3::bigint where $3 = 1 or exists (select from inbox_key where consumer = $1 and key = $2)
on conflict (consumer, key) do update set version = excluded.version where k.version = excluded.version - 1`
	selectKey = `select coalesce(max(version), 0) from inbox_key where consumer = $1 and key = $2`
)

var (
	errOtherPayload = errors.New("same id, other payload")
	errGap          = errors.New("an earlier version is missing")
)

func (c *consumption) rememberChecked(ctx context.Context, tx pgx.Tx, msg *message.Message) (isNew bool, err error) {
	e, err := event.FromMessage(msg)
	if err != nil {
		return false, err
	}
	hash, at := sha256.Sum256(e.Data), placeOf(msg)
	where := fmt.Sprintf(`{"group":%q,"topic":%q,"partition":%d,"offset":%d}`, c.group, c.topic, at.partition, at.offset)
	tag, err := tx.Exec(ctx, insertChecked, inboxConsumer, e.ID, e.Time, e.Type, hash[:], where)
	if err != nil {
		return false, err
	}
	if tag.RowsAffected() == 0 {
		var known []byte
		err := tx.QueryRow(ctx, selectChecked, inboxConsumer, e.ID, e.Time).Scan(&known)
		if err == nil && [sha256.Size]byte(known) != hash {
			err = errOtherPayload
		}
		return false, err
	}
	if tag, err = tx.Exec(ctx, moveKey, inboxConsumer, e.Key, e.Version); err != nil || tag.RowsAffected() == 1 {
		return err == nil, err
	}
	var version int64
	err = tx.QueryRow(ctx, selectKey, inboxConsumer, e.Key).Scan(&version)
	if err == nil && e.Version > version {
		err = errGap
	}
	return false, err
}
