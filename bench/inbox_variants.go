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

type member struct {
	Number int64  `json:"number"`
	Email  string `json:"email"`
}

const insertEffectSQL = `insert into effect (event_id, number, email) values ($1, $2, $3)`

func registered(ctx context.Context, tx pgx.Tx, e event.Event, m member) error {
	return inbox.Queue(ctx, tx, insertEffectSQL, e.ID, m.Number, m.Email)
}

// ourInbox has the defaults of package eventing: metrics, log format and level. The log's text is discarded. No
// contract is validated.
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
			Config: c.kafka, Group: c.group, DrainTimeout: 10 * time.Second, Batch: batch,
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

func consumeIDs(ctx context.Context, c *consumption) error { return c.byHand(ctx, rememberID) }

// consumeChecked checks by hand the same as a strict consumer of ours: the payload's hash, the record's place, and that
// the version is the next one of its key, in the same tables.
func consumeChecked(ctx context.Context, c *consumption) error {
	return c.byHand(ctx, c.rememberChecked)
}

func (c *consumption) byHand(
	ctx context.Context, remember func(context.Context, pgx.Tx, *message.Message) (isNew bool, err error),
) error {
	return consumeByHand(ctx, c.kafka.Brokers, c.group, c.topic, kafka.Marshaler{}, func(msg *message.Message) error {
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
