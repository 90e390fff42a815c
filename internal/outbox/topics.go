package outbox

import (
	"context"
	"errors"
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

const topicsSQL = `select topic, partitions from public.outbox_topic`

// awaitTopics returns when every topic has the partitions that its keys are spread over. While one has not, the relay
// leads and publishes nothing: it keeps its lease and the room for writers, fails its health check at once, and goes on
// within a second of [ConfirmPartitions].
//
// It is asked between windows, and not in the middle of one: until an operator has confirmed the new count the
// publisher spreads keys over the old one, see [RelayConfig.SpreadKeys].
func (l *leader) awaitTopics(ctx context.Context) error {
	if l.cfg.Topics == nil || time.Since(l.topicsAsked) < l.cfg.TopicsEvery {
		return nil
	}
	err := l.checkTopics(ctx)
	refused, held := errors.AsType[*CheckError](err)
	if !held {
		return err
	}
	l.log.Error("relay publishes nothing until the partitions are confirmed", "error", refused)
	for held {
		l.health.refuse(refused)
		if !sleep(ctx, l.cfg.ConfirmEvery) {
			return ctx.Err()
		}
		if err := l.tend(ctx); err != nil {
			return err
		}
		err = l.checkTopics(ctx)
		refused, held = errors.AsType[*CheckError](err)
	}
	if err == nil {
		l.log.Info("relay goes on: the partitions are confirmed")
		l.health.well(stateLeading)
	}
	return err
}

// checkTopics compares the topics with what they were when they were first seen. A broker that does not answer is no
// reason to stop, nor to go on: what it said last still holds.
func (l *leader) checkTopics(ctx context.Context) error {
	l.topicsAsked = time.Now()
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.Lease/3)
	defer cancel()
	counts, err := l.cfg.Topics(ask)
	if err != nil {
		l.log.Warn("partition counts are not known", "error", err)
	} else {
		l.topics = counts
	}
	var recorded map[string]int32
	err = l.onConn(ctx, func(ctx context.Context) (err error) {
		recorded, err = recordTopics(ctx, l.conn, l.topics)
		return err
	})
	if err != nil {
		return err
	}
	l.cfg.SpreadKeys(recorded)
	return compareTopics(recorded, l.topics)
}

// recordTopics records the counts of topics that are seen for the first time, and returns all that are recorded.
func recordTopics(ctx context.Context, conn *pgx.Conn, found map[string]int32) (map[string]int32, error) {
	recorded, err := readTopics(ctx, conn)
	if err != nil {
		return nil, err
	}
	var topics []string
	var partitions []int32
	for topic, count := range found {
		if _, known := recorded[topic]; !known {
			topics, partitions = append(topics, topic), append(partitions, count)
		}
	}
	if len(topics) == 0 {
		return recorded, nil
	}
	if _, err := conn.Exec(ctx, recordTopicsSQL, topics, partitions); err != nil {
		return nil, fmt.Errorf("record topics: %w", err)
	}
	return readTopics(ctx, conn)
}

func readTopics(ctx context.Context, db DB) (map[string]int32, error) {
	rows, err := db.Query(ctx, topicsSQL)
	if err != nil {
		return nil, fmt.Errorf("read topics: %w", err)
	}
	recorded := map[string]int32{}
	var topic string
	var partitions int32
	_, err = pgx.ForEachRow(rows, []any{&topic, &partitions}, func() error {
		recorded[topic] = partitions
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read topics: %w", err)
	}
	return recorded, nil
}

// compareTopics refuses with a [*CheckError] what is not as it was recorded.
func compareTopics(recorded, found map[string]int32) error {
	var c checklist
	for _, topic := range slices.Sorted(maps.Keys(found)) {
		c.refuse(found[topic] != recorded[topic], codePartitionCount,
			fmt.Sprintf("%s has %d partitions, its keys are spread over %d", topic, found[topic], recorded[topic]))
	}
	return c.err()
}

// TopicPartitions is over how many partitions the keys of each topic are spread, as it was first seen or last
// confirmed.
func TopicPartitions(ctx context.Context, db DB) (map[string]int32, error) {
	return readTopics(ctx, db)
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
	rows, err := db.Query(ctx, confirmPartitionsSQL, topic, partitions)
	if err != nil {
		return 0, fmt.Errorf("confirm partitions: %w", err)
	}
	before, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int32])
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ErrPartitionsUnchanged
	}
	if err != nil {
		return 0, fmt.Errorf("confirm partitions: %w", err)
	}
	return before, nil
}
