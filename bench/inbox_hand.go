package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
)

// byHand is what a careful user writes on Watermill: its Router on watermill-kafka's subscriber, which hands over one
// message of a partition at a time, and in the handler one transaction per message: insert on conflict, domain insert,
// commit. Where a default would lose events, or would only make it look bad, it gets the better setting:
//
//   - a new group begins with the oldest record, not with the newest;
//   - the records are read with this project's Marshaler, the same ones as ours reads;
//   - statements go over pgx, which prepares them, not through database/sql;
//   - nothing is logged.
//
// checked adds by hand what a strict consumer of ours checks: the payload's hash, where the record lay, and that the
// version is the next one of its key, in the same tables as ours.
func byHand(checked bool) func(context.Context, consumption) error {
	return func(ctx context.Context, c consumption) error {
		cfg := wkafka.DefaultSaramaSubscriberConfig()
		cfg.Version = sarama.V3_6_0_0
		cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
		subscriber, err := wkafka.NewSubscriber(wkafka.SubscriberConfig{
			Brokers: c.brokers, ConsumerGroup: c.group, Unmarshaler: kafka.Marshaler{}, OverwriteSaramaConfig: cfg,
		}, watermill.NopLogger{})
		if err != nil {
			return err
		}
		router, err := message.NewRouter(message.RouterConfig{CloseTimeout: stopTimeout}, watermill.NopLogger{})
		if err != nil {
			return err
		}
		handle := c.remember
		if checked {
			handle = c.rememberChecked
		}
		router.AddConsumerHandler("members", c.topic, subscriber, func(msg *message.Message) error {
			c.ledger.begin()
			if err := handle(msg); err != nil {
				return err
			}
			partition, _ := wkafka.MessagePartitionFromCtx(msg.Context())
			offset, _ := wkafka.MessagePartitionOffsetFromCtx(msg.Context())
			c.ledger.handled(partition, offset)
			return nil
		})
		return runRouter(ctx, router.Run, router.Running(), router.Close)
	}
}

const byHandTableSQL = `
create table ` + byHandTable + ` (
    consumer text not null, event_id text not null, event_time timestamptz not null default now(),
    primary key (consumer, event_id))`

const insertByHand = `insert into ` + byHandTable + ` (consumer, event_id) values ($1, $2) on conflict do nothing`

// remember is the hand-written handler with the id alone.
func (c consumption) remember(msg *message.Message) error {
	var m member
	if err := json.Unmarshal(msg.Payload, &m); err != nil {
		return fmt.Errorf("decode member: %w", err)
	}
	ctx := msg.Context()
	return pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, insertByHand, inboxConsumer, msg.UUID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		_, err = tx.Exec(ctx, insertEffectSQL, msg.UUID, m.Number, m.Email)
		return err
	})
}

const (
	insertChecked = `
insert into public.inbox (consumer, event_id, event_time, event_type, payload_hash, metadata)
values ($1, $2, $3, $4, $5, $6) on conflict do nothing`
	selectChecked = `
select payload_hash from public.inbox where consumer = $1 and event_id = $2 and event_time = $3`
	moveKey = `
insert into public.inbox_key as k (consumer, key, version)
select $1, $2, $3::bigint where $3 = 1 or exists (select from public.inbox_key where consumer = $1 and key = $2)
on conflict (consumer, key) do update set version = excluded.version where k.version = excluded.version - 1`
	selectKey = `
select coalesce(max(version), 0) from public.inbox_key where consumer = $1 and key = $2`
)

var (
	errOtherPayload = errors.New("same id, other payload")
	errGap          = errors.New("an earlier version is missing")
)

// rememberChecked is the hand-written handler with the hash and the key's version.
func (c consumption) rememberChecked(msg *message.Message) error {
	e, err := event.FromMessage(msg)
	if err != nil {
		return err
	}
	var m member
	if err := json.Unmarshal(e.Data, &m); err != nil {
		return fmt.Errorf("decode member: %w", err)
	}
	ctx, hash := msg.Context(), sha256.Sum256(e.Data)
	partition, _ := wkafka.MessagePartitionFromCtx(ctx)
	offset, _ := wkafka.MessagePartitionOffsetFromCtx(ctx)
	where := fmt.Sprintf(`{"group":%q,"topic":%q,"partition":%d,"offset":%d}`, c.group, c.topic, partition, offset)
	return pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, insertChecked, inboxConsumer, e.ID, e.Time, e.Type, hash[:], where)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return c.compare(ctx, tx, e, hash)
		}
		if tag, err = tx.Exec(ctx, moveKey, inboxConsumer, e.Key, e.Version); err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return c.skip(ctx, tx, e)
		}
		_, err = tx.Exec(ctx, insertEffectSQL, e.ID, m.Number, m.Email)
		return err
	})
}

// compare finds out whether the id that is there already came with the same payload.
func (consumption) compare(ctx context.Context, tx pgx.Tx, e event.Event, hash [sha256.Size]byte) error {
	var known []byte
	err := tx.QueryRow(ctx, selectChecked, inboxConsumer, e.ID, e.Time).Scan(&known)
	if err == nil && [sha256.Size]byte(known) != hash {
		return errOtherPayload
	}
	return err
}

// skip returns nil for a version that the key has reached.
func (consumption) skip(ctx context.Context, tx pgx.Tx, e event.Event) error {
	var version int64
	err := tx.QueryRow(ctx, selectKey, inboxConsumer, e.Key).Scan(&version)
	if err == nil && e.Version > version {
		return errGap
	}
	return err
}
