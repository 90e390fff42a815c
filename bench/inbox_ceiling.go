package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

const (
	insertRowsSQL = `
insert into public.inbox (consumer, event_id, event_time, event_type, payload_hash, metadata)
select $1, e.id, e.at, $2, e.hash, e.metadata::jsonb
from unnest($3::text[], $4::timestamptz[], $5::bytea[], $6::text[]) as e (id, at, hash, metadata)`
	insertEffectsSQL = `
insert into public.effect (event_id, number, email)
select * from unnest($1::text[], $2::bigint[], $3::text[])`
)

// rowBatch is what one transaction of the ceiling writes.
type rowBatch struct {
	ids, metadata, emails []string
	times                 []time.Time
	hashes                [][]byte
	numbers               []int64
}

// writeRows is the ceiling: the rows that the events become, made before, in transactions of the same size over as many
// connections, each a single round trip. The domain's rows are inserted by a statement each, as handlers do that know
// one event at a time; as a set they are a second ceiling, for who does without handlers.
func writeRows(sets bool) func(*records) writer {
	return func(r *records) writer {
		made := make([][]rowBatch, r.partitions)
		for p := range made {
			made[p] = r.rows(p)
		}
		return func(ctx context.Context, pool *pgxpool.Pool) error {
			group, ctx := errgroup.WithContext(ctx)
			for _, batches := range made {
				group.Go(func() error { return writeAll(ctx, pool, batches, sets) })
			}
			return group.Wait()
		}
	}
}

// writer writes rows that were made before.
type writer func(ctx context.Context, pool *pgxpool.Pool) error

func writeAll(ctx context.Context, pool *pgxpool.Pool, batches []rowBatch, sets bool) error {
	for _, rows := range batches {
		batch := &pgx.Batch{}
		batch.Queue("begin")
		rows.queue(batch, sets)
		batch.Queue("commit")
		if err := pool.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("write rows: %w", err)
		}
	}
	return nil
}

func (b rowBatch) queue(batch *pgx.Batch, sets bool) {
	batch.Queue(insertRowsSQL, inboxConsumer, eventType, b.ids, b.times, b.hashes, b.metadata)
	if sets {
		batch.Queue(insertEffectsSQL, b.ids, b.numbers, b.emails)
		return
	}
	for i := range b.ids {
		batch.Queue(insertEffectSQL, b.ids[i], b.numbers[i], b.emails[i])
	}
}

// rows are the different events of a partition, in batches.
func (r *records) rows(partition int) []rowBatch {
	var all []rowBatch
	for i := partition; i < len(r.numbers); i += r.partitions {
		if !r.isNew(i) {
			continue
		}
		if n := len(all); n == 0 || len(all[n-1].ids) == inboxBatch {
			all = append(all, rowBatch{})
		}
		b, hash := &all[len(all)-1], sha256.Sum256(payload(i))
		b.ids, b.times, b.hashes = append(b.ids, r.id(i)), append(b.times, r.timeOf(i)), append(b.hashes, hash[:])
		b.numbers, b.emails = append(b.numbers, int64(i)), append(b.emails, email(i))
		b.metadata = append(b.metadata, fmt.Sprintf(
			`{"group":"bench-inbox","topic":"bench-inbox","partition":%d,"offset":%d}`, partition, i/r.partitions))
	}
	return all
}
