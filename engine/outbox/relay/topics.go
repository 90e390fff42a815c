package relay

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/outbox"
)

const codePartitionCount = "partition_count"

// topicCheck compares the broker's topics with what they were when they were first seen.
type topicCheck struct {
	cfg     Config
	log     *slog.Logger
	session *session
	counts  map[string]int32 // the broker's last answer
	askedAt time.Time
}

// isDue is asked between windows, and not in the middle of one: until an operator has confirmed the new count the
// publisher spreads keys over the old one, see [Config.SpreadKeys].
func (c *topicCheck) isDue() bool {
	return c.cfg.Topics != nil && time.Since(c.askedAt) >= c.cfg.TopicsEvery
}

// check refuses, with a [*outbox.CheckError], a topic that has not the partitions that its keys are spread over. A
// broker that does not answer is no reason to stop, nor to go on: what it said last still holds.
func (c *topicCheck) check(ctx context.Context) error {
	c.askedAt = time.Now()
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Lease/3)
	defer cancel()
	counts, err := c.cfg.Topics(ask)
	if err != nil {
		c.log.Warn("partition counts are not known", "error", err)
	} else {
		c.counts = counts
	}
	var recorded map[string]int32
	err = c.session.do(ctx, func(ctx context.Context) (err error) {
		recorded, err = recordTopics(ctx, c.session.conn, c.counts)
		return err
	})
	if err != nil {
		return err
	}
	c.cfg.SpreadKeys(recorded)
	var e outbox.CheckError
	for _, topic := range slices.Sorted(maps.Keys(c.counts)) {
		e.RefuseIf(c.counts[topic] != recorded[topic], codePartitionCount,
			fmt.Sprintf("%s has %d partitions, its keys are spread over %d", topic, c.counts[topic], recorded[topic]))
	}
	return e.Err()
}

const recordTopicsSQL = `
with added as (
    insert into public.outbox_topic (topic, partitions)
    select * from unnest($1::text[], $2::int[])
    on conflict do nothing
    returning topic, partitions
)
select topic, partitions from public.outbox_topic union all select topic, partitions from added`

// recordTopics records the counts of topics that are seen for the first time, and returns all that are recorded.
func recordTopics(ctx context.Context, conn *pgx.Conn, found map[string]int32) (map[string]int32, error) {
	topics := slices.Sorted(maps.Keys(found))
	partitions := make([]int32, len(topics))
	for i, topic := range topics {
		partitions[i] = found[topic]
	}
	rows, _ := conn.Query(ctx, recordTopicsSQL, topics, partitions)
	recorded := map[string]int32{}
	var topic string
	var count int32
	_, err := pgx.ForEachRow(rows, []any{&topic, &count}, func() error {
		recorded[topic] = count
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("record topics: %w", err)
	}
	return recorded, nil
}
