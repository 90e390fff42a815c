package outbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const codePartitionCount = "partition_count"

const recordTopicsSQL = `
insert into public.outbox_topic (topic, partitions)
select * from unnest($1::text[], $2::int[])
on conflict do nothing`

const differingTopicsSQL = `
select t.topic, t.partitions, x.partitions
from unnest($1::text[], $2::int[]) as x (topic, partitions)
join public.outbox_topic t on t.topic = x.topic and t.partitions <> x.partitions
order by 1`

// checkTopics compares the topics with what they were when they were first seen. It is asked again and again, since a
// topic may come to be, or get more partitions, while the relay runs. A broker that does not answer is no reason not to
// lead.
func (l *leader) checkTopics(ctx context.Context) error {
	if l.cfg.Topics == nil || time.Since(l.topicsAsked) < l.cfg.TopicsEvery {
		return nil
	}
	l.topicsAsked = time.Now()
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.Lease/3)
	defer cancel()
	counts, err := l.cfg.Topics(ask)
	if err != nil {
		l.log.Warn("partition counts are not known", "error", err)
		return nil
	}
	if maps.Equal(counts, l.topics) {
		return nil
	}
	err = l.onConn(ctx, func(ctx context.Context) error { return compareTopics(ctx, l.conn, counts) })
	if err == nil {
		l.topics = counts
	}
	return err
}

// compareTopics records what is seen for the first time and refuses what differs with a [*CheckError].
func compareTopics(ctx context.Context, conn *pgx.Conn, counts map[string]int32) error {
	topics := slices.Sorted(maps.Keys(counts))
	partitions := make([]int32, len(topics))
	for i, topic := range topics {
		partitions[i] = counts[topic]
	}
	if _, err := conn.Exec(ctx, recordTopicsSQL, topics, partitions); err != nil {
		return fmt.Errorf("record topics: %w", err)
	}
	rows, err := conn.Query(ctx, differingTopicsSQL, topics, partitions)
	if err != nil {
		return fmt.Errorf("compare topics: %w", err)
	}
	var c checklist
	var topic string
	var recorded, found int32
	_, err = pgx.ForEachRow(rows, []any{&topic, &recorded, &found}, func() error {
		c.refuse(true, codePartitionCount,
			fmt.Sprintf("%s has %d partitions, its keys were spread over %d", topic, found, recorded))
		return nil
	})
	if err != nil {
		return fmt.Errorf("compare topics: %w", err)
	}
	return c.err()
}
