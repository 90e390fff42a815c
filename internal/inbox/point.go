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

// ErrWentBack means that the database lost outcomes: it was restored, or a standby took over. Nothing is committed. The
// owner reads again from the point.
var ErrWentBack = failure.AsTransient(errors.New("the database went back: it lost outcomes of earlier records"))

// The point keeps its place while records below it come again.
const updatePoint = `
update public.inbox_point
set time = case when $5 >= next_offset then $6 else time end, next_offset = greatest(next_offset, $5)
where consumer = $1 and topic = $2 and partition = $3 and next_offset >= $4`

// Replays, and deliveries whose subscriber does not know its position, move no point.
func (t *transaction) movePoint(batch *pgx.Batch) {
	first, last := t.items[0].origin, t.items[len(t.items)-1].origin
	if first.From == nil {
		return
	}
	move := batch.Queue(updatePoint, t.consumer, first.Topic, first.Partition, *first.From, last.Offset+1,
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

const insertPoint = `
insert into public.inbox_point as p (consumer, topic, partition, next_offset, time) values ($1, $2, $3, $4, $5)
on conflict (consumer, topic, partition) do update set next_offset = p.next_offset
returning next_offset, time`

// BeginPoint stores a topic-partition's first point, or returns the existing one.
func (in *Inbox) BeginPoint(
	ctx context.Context, topic string, partition int32, first event.Point,
) (point event.Point, err error) {
	err = in.cfg.Pool.QueryRow(ctx, insertPoint, in.cfg.Consumer, topic, partition, first.Next, first.Time).
		Scan(&point.Next, &point.Time)
	if err != nil {
		return point, fmt.Errorf("store first point: %w", err)
	}
	return point, nil
}

const rewindPoint = `
update public.inbox_point set next_offset = $6, time = $7
where consumer = $1 and topic = $2 and partition = $3 and next_offset = $4 and time = $5`

// RewindPoint replaces the point from by a lower one, before all of a log is read again. It reports whether from was
// stored.
func (in *Inbox) RewindPoint(
	ctx context.Context, topic string, partition int32, from, to event.Point,
) (isRewound bool, err error) {
	tag, err := in.cfg.Pool.Exec(ctx, rewindPoint, in.cfg.Consumer, topic, partition,
		from.Next, from.Time, to.Next, to.Time)
	if err != nil {
		return false, fmt.Errorf("rewind point: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// Rewound counts a topic-partition that is read again because its database or its broker went back.
func (in *Inbox) Rewound(cause string) { in.metrics.rewinds.WithLabelValues(cause).Inc() }
