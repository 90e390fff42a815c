package outbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
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

// checkTopics compares the topics with what they were when they were first seen. A broker that does not answer is no
// reason not to lead: it is asked again.
func (l *leader) checkTopics(ctx context.Context) error {
	if l.cfg.Topics == nil {
		return nil
	}
	ask, cancel := context.WithTimeout(ctx, l.cfg.Lease/3)
	defer cancel()
	counts, err := l.cfg.Topics(ask)
	if err != nil {
		l.log.Warn("partition counts are not known", "error", err)
		return nil
	}
	topics := slices.Sorted(maps.Keys(counts))
	partitions := make([]int32, len(topics))
	for i, topic := range topics {
		partitions[i] = counts[topic]
	}
	if _, err := l.conn.Exec(ctx, recordTopicsSQL, topics, partitions); err != nil {
		return fmt.Errorf("record topics: %w", err)
	}
	rows, err := l.conn.Query(ctx, differingTopicsSQL, topics, partitions)
	if err != nil {
		return fmt.Errorf("compare topics: %w", err)
	}
	defer rows.Close()
	var c checklist
	for rows.Next() {
		var topic string
		var recorded, found int32
		if err := rows.Scan(&topic, &recorded, &found); err != nil {
			return fmt.Errorf("compare topics: %w", err)
		}
		c.refuse(true, codePartitionCount,
			fmt.Sprintf("%s has %d partitions, its keys were spread over %d", topic, found, recorded))
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("compare topics: %w", err)
	}
	l.topicsKnown = len(c.problems) == 0
	return c.err()
}
