package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
)

// ErrWentBack means that the database lost outcomes: it was restored, or a standby took over. Nothing is committed.
var ErrWentBack = failure.AsTransient(errors.New("the database went back: it lost outcomes of earlier records"))

// The point keeps its place while records below it come again.
const updatePoint = `
update public.inbox_point
set time = case when $5 >= next_offset then $6 else time end, next_offset = greatest(next_offset, $5)
where consumer = $1 and topic = $2 and partition = $3 and next_offset >= $4`

// Replays, and subscribers that do not know their position, move no point.
func (t *transaction) movePoint(batch *pgx.Batch) {
	first, last := t.items[0].origin, t.items[len(t.items)-1].origin
	if first.From == nil {
		return
	}
	move := batch.Queue(updatePoint, t.in.cfg.Consumer, first.Topic, first.Partition, *first.From, last.Offset+1,
		last.Time.UnixMilli())
	move.Exec(func(moved pgconn.CommandTag) error {
		if moved.RowsAffected() == 0 {
			return ErrWentBack
		}
		return nil
	})
}

const selectPoints = `
select partition, next_offset, time from public.inbox_point where consumer = $1 and topic = $2`

// ReadPoints returns the point of each partition.
func (in *Inbox) ReadPoints(ctx context.Context, topic string) (map[int32]event.Point, error) {
	points := map[int32]event.Point{}
	var partition int32
	var point event.Point
	rows, _ := in.cfg.Pool.Query(ctx, selectPoints, in.cfg.Consumer, topic)
	_, err := pgx.ForEachRow(rows, []any{&partition, &point.Next, &point.Time}, func() error {
		points[partition] = point
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read points: %w", err)
	}
	return points, nil
}

// A first point replaces none: another owner may have begun, and moved its own.
const storePoint = `
insert into public.inbox_point (consumer, topic, partition, next_offset, time) values ($1, $2, $3, $4, $5)
on conflict (consumer, topic, partition) do update set next_offset = excluded.next_offset, time = excluded.time
where excluded.time = $6`

// StorePoint stores a topic-partition's first point. One with [event.ReadAgain] also replaces a point, before all of a
// log is read again.
func (in *Inbox) StorePoint(ctx context.Context, topic string, partition int32, to event.Point) error {
	if _, err := in.cfg.Pool.Exec(ctx, storePoint, in.cfg.Consumer, topic, partition, to.Next, to.Time,
		event.ReadAgain); err != nil {
		return fmt.Errorf("store point: %w", err)
	}
	return nil
}

// Rewound counts a topic-partition that is read again.
func (in *Inbox) Rewound(cause string) { in.metrics.rewinds.WithLabelValues(cause).Inc() }
