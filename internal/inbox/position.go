package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const selectPosition = `
select next_offset from public.inbox_position where consumer = $1 and topic = $2 and partition = $3`

// Position is the offset of the partition's next record as the database knows it; false where it knows none. A consumer
// group that is ahead of it has committed what a restore took away.
func (in *Inbox) Position(ctx context.Context, topic string, partition int32) (next int64, known bool, err error) {
	err = in.cfg.Pool.QueryRow(ctx, selectPosition, in.cfg.Consumer, topic, partition).Scan(&next)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read position: %w", err)
	}
	return next, true, nil
}

const setPosition = `
insert into public.inbox_position (consumer, topic, partition, next_offset) values ($1, $2, $3, $4)
on conflict (consumer, topic, partition) do update set next_offset = excluded.next_offset`

// SetPosition stores where the reading of a partition begins.
func (in *Inbox) SetPosition(ctx context.Context, topic string, partition int32, next int64) error {
	if _, err := in.cfg.Pool.Exec(ctx, setPosition, in.cfg.Consumer, topic, partition, next); err != nil {
		return fmt.Errorf("store position: %w", err)
	}
	return nil
}

// Another owner of the partition, which overlaps with this one, may have come further.
const advancePosition = `
update public.inbox_position set next_offset = greatest(next_offset, $5)
where consumer = $1 and topic = $2 and partition = $3 and next_offset >= $4`

// Advance stores how far a partition was read since from was stored, before that is committed to the group. It reports
// false where the database is not as far as from: it was restored meanwhile.
func (in *Inbox) Advance(
	ctx context.Context, topic string, partition int32, from, next int64,
) (kept bool, err error) {
	tag, err := in.cfg.Pool.Exec(ctx, advancePosition, in.cfg.Consumer, topic, partition, from, next)
	if err != nil {
		return false, fmt.Errorf("store position: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}
