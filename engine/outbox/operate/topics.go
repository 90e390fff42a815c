package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const topicsSQL = `select coalesce(jsonb_object_agg(topic, partitions), '{}') from public.outbox_topic`

// TopicPartitions is over how many partitions the keys of each topic are spread, as it was first seen or last
// confirmed.
func TopicPartitions(ctx context.Context, db DB) (recorded map[string]int32, err error) {
	if err := db.QueryRow(ctx, topicsSQL).Scan(&recorded); err != nil {
		return nil, fmt.Errorf("read topics: %w", err)
	}
	return recorded, nil
}

// ErrPartitionsUnchanged means that a topic's keys are spread over that many partitions already, or that the topic was
// never seen.
var ErrPartitionsUnchanged = errors.New("outbox: no other number of partitions is recorded for the topic")

const confirmPartitionsSQL = `
update public.outbox_topic t set partitions = $2
from (select topic, partitions from public.outbox_topic where topic = $1 for update) was
where t.topic = was.topic and was.partitions <> $2
returning was.partitions`

// ConfirmPartitions makes the relay spread the topic's keys over another number of partitions from now on, and go on
// if it waits for that. It returns the number until now.
//
// Keys move to other partitions by it. A consumer that has not handled what lies in the old ones may see a key's later
// event first: have every consumer group of the topic at its end before, which the relay's waiting makes possible.
// Versioned consumers that do not allow gaps keep the order even so.
func ConfirmPartitions(ctx context.Context, db DB, topic string, partitions int32) (before int32, err error) {
	err = db.QueryRow(ctx, confirmPartitionsSQL, topic, partitions).Scan(&before)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, ErrPartitionsUnchanged
	case err != nil:
		return 0, fmt.Errorf("confirm partitions: %w", err)
	}
	return before, nil
}
