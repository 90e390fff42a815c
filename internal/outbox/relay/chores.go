package relay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/restore"
	"example.com/twinbox/internal/outbox/window"
)

// tablePartitions keeps room ahead of the writers, and nothing for longer than it is to be kept.
type tablePartitions struct {
	*leader
	at time.Time // they are to be maintained again
}

// partition is a range of positions: from Lower to Upper, Upper not included.
type partition struct {
	Name         string
	Lower, Upper int64
}

// maxChanges bounds how many partitions are created at a time, and how many dropped: the relay has events to publish.
const maxChanges = 8

const roomSQL = `
select coalesce(min(upper), 9223372036854775807), coalesce(max(upper), 1),
    coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0)
from (` + window.Partitions + `) p`

const forgetIDsSQL = `
delete from public.outbox_given_id where event_id = any (array(
    select event_id from public.outbox_given_id
    where added_at < statement_timestamp() - $1 * interval '1 microsecond' order by added_at limit $2))`

// maxForgotten bounds how many ids are forgotten at a time.
const maxForgotten = 10_000

// maintain creates partitions ahead of the writers, drops what is published and old enough, and forgets the ids that
// writers gave, after [Config.IDRetention]. It runs inside of do.
func (t *tablePartitions) maintain(ctx context.Context) error {
	t.at = time.Now().Add(t.cfg.MaintainEvery)
	var firstUpper, upper, head int64
	if err := t.conn.QueryRow(ctx, roomSQL).Scan(&firstUpper, &upper, &head); err != nil {
		return fmt.Errorf("read room in partitions: %w", err)
	}
	room := t.cfg.PartitionSize * int64(t.cfg.PartitionsAhead)
	for n := 0; upper-head <= room && n < maxChanges; n++ {
		if err := t.create(ctx, upper, upper+t.cfg.PartitionSize); err != nil {
			return err
		}
		upper += t.cfg.PartitionSize
	}
	// A relay that begins to lead publishes nothing before this: it asks no more than it has to.
	if published := t.window.PublishedTo(); firstUpper <= published {
		if err := t.dropPublished(ctx, published); err != nil {
			return err
		}
	}
	if _, err := t.conn.Exec(ctx, forgetIDsSQL, t.cfg.IDRetention.Microseconds(), maxForgotten); err != nil {
		return fmt.Errorf("forget given ids: %w", err)
	}
	return nil
}

const createPartitionSQL = `
select public.outbox_create_partition($1, $2) from set_config('lock_timeout', '1s', true)`

// create does not lock the outbox against its writers. The function does what this session has no right to.
func (t *tablePartitions) create(ctx context.Context, lower, upper int64) error {
	fault.Here("relay.partition.before_create")
	err := t.runGuarded(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, createPartitionSQL, lower, upper)
		return err
	})
	if err != nil {
		return fmt.Errorf("create partition from %d: %w", lower, err)
	}
	t.cfg.Log.Info("partition created", "from", lower, "to", upper)
	return nil
}

// expiredSQL notes when a partition was first seen to be published, and finds those that were noted long ago. It keeps
// a partition in which a parked key has rows, and passes over notes of partitions that were taken away by hand.
const expiredSQL = `
with published as (
    select p.* from (` + window.Partitions + `) p where upper <= $1
), noted as (
    insert into public.outbox_partition (upper_bound) select upper from published on conflict do nothing
)
select p.*
from published p
join public.outbox_partition note on note.upper_bound = p.upper
where note.published_at < clock_timestamp() - $2 * interval '1 microsecond'
    and not exists (select from public.outbox_held h where h.position >= p.lower and h.position < p.upper)
order by p.upper limit $3`

// dropPublished drops whole partitions, which costs no vacuum. One whose end is not above the window's position is
// wholly published.
func (t *tablePartitions) dropPublished(ctx context.Context, published int64) error {
	rows, _ := t.conn.Query(ctx, expiredSQL, published, t.cfg.Retention.Microseconds(), maxChanges)
	expired, err := pgx.CollectRows(rows, pgx.RowToStructByPos[partition])
	if err != nil {
		return fmt.Errorf("find expired partitions: %w", err)
	}
	for _, p := range expired {
		switch err := t.drop(ctx, p); {
		case isBusy(err): // the others would wait as long each, for the same lock
			t.metrics.neglected.Inc()
			t.cfg.Log.Warn("partition not dropped, the outbox is in use", "from", p.Lower)
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

const dropPartitionSQL = `select public.outbox_drop_partition($1) from set_config('lock_timeout', '200ms', true)`

// drop waits for writers only briefly: dropping locks the whole outbox, and other writers wait behind it. A transaction
// that is open for longer only puts it off.
func (t *tablePartitions) drop(ctx context.Context, p partition) error {
	fault.Here("relay.partition.before_drop")
	err := t.runGuarded(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, dropPartitionSQL, p.Name)
		return err
	})
	if err != nil {
		return fmt.Errorf("drop partition from %d: %w", p.Lower, err)
	}
	t.cfg.Log.Info("partition dropped", "from", p.Lower, "to", p.Upper)
	return nil
}

// isBusy reports that a lock was held for longer than one may wait for it here: it only has to be tried again.
func isBusy(err error) bool {
	pgErr, is := errors.AsType[*pgconn.PgError](err)
	return is && pgErr.Code == "55P03" // lock_not_available
}

const codePartitionCount = "partition_count"

// checkTopics compares the broker's topics with what they were when they were first seen, and refuses, with a
// [*outbox.CheckError], one that has not the partitions that its keys are spread over. It is done between windows. A
// broker that does not answer is no reason to stop, nor to go on: what it said last still holds.
func (l *leader) checkTopics(ctx context.Context) error {
	l.topicsAt = time.Now().Add(l.cfg.TopicsEvery)
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.Lease/3)
	defer cancel()
	if counts, err := l.cfg.Topics(ask); err != nil {
		l.cfg.Log.Warn("partition counts are not known", "error", err)
	} else {
		l.topics = counts
	}
	var recorded map[string]int32
	err := l.do(ctx, func(ctx context.Context) error {
		return l.conn.QueryRow(ctx, recordTopicsSQL, l.topics).Scan(&recorded)
	})
	if err != nil {
		return fmt.Errorf("record topics: %w", err)
	}
	var e outbox.CheckError
	for _, topic := range slices.Sorted(maps.Keys(l.topics)) {
		e.RefuseIf(l.topics[topic] != recorded[topic], codePartitionCount,
			fmt.Sprintf("%s has %d partitions, its keys are spread over %d", topic, l.topics[topic], recorded[topic]))
	}
	return e.Err()
}

// recordTopicsSQL records the counts of topics that are seen for the first time, and returns all that are recorded.
const recordTopicsSQL = `
with added as (
    insert into public.outbox_topic (topic, partitions)
    select key, value::int from jsonb_each_text(coalesce(nullif($1::jsonb, 'null'), '{}'))
    on conflict do nothing
    returning topic, partitions
)
select coalesce(jsonb_object_agg(topic, partitions), '{}')
from (select topic, partitions from public.outbox_topic union all select topic, partitions from added) t`

// checkDatabase is done when a relay begins to lead. The cursor of a database that comes from another cluster is put
// right, which fails while there are writers. Then the broker is asked for events that the database has forgotten: a
// restore that is not confirmed is refused with a [*outbox.CheckError].
func (l *leader) checkDatabase(ctx context.Context) error {
	if from, to := l.window.Clusters(); from != to {
		if err := l.do(ctx, l.window.Rebase); err != nil {
			return err
		}
		l.cfg.Log.Warn("outbox was restored into another cluster", "from", from, "to", to)
	}
	var at restore.Standing
	err := l.do(ctx, func(ctx context.Context) (err error) {
		at, err = restore.ReadStanding(ctx, l.conn)
		return err
	})
	if err == nil && at.Restored == "" && !at.Compared && l.cfg.Published != nil {
		var events []cloudevent.Event
		if !at.New { // a new database has forgotten nothing
			// The broker first: what it holds by then the database knew before.
			ask, cancel := context.WithTimeout(ctx, l.cfg.Lease/2)
			defer cancel()
			if events, err = l.cfg.Published(ask); err != nil {
				return fmt.Errorf("compare with the broker: %w", err)
			}
		}
		err = l.do(ctx, func(ctx context.Context) (err error) {
			at.Restored, err = restore.Compare(ctx, l.conn, events, l.term.Epoch)
			return err
		})
	}
	if err != nil || at.Restored == "" {
		return err
	}
	return &outbox.CheckError{Problems: []outbox.Problem{{Code: restore.CodeRestored, Detail: at.Restored}}}
}

// scheduledEvents adds what was scheduled when it is due. The leader sleeps until then; it looks again after a commit,
// which may have scheduled something that is due earlier.
type scheduledEvents struct {
	*leader
	at       time.Time // it looks again
	lookedAt time.Time
}

const (
	// lookAfterCommit bounds the looks where commits are many: a look costs a statement.
	lookAfterCommit = 200 * time.Millisecond
	// lookAnyway finds what another process has scheduled whose notification was lost.
	lookAnyway = 30 * time.Second
	// lookAtHeld is for what is due and cannot be had at the moment: a transaction holds its name or its key.
	lookAtHeld = 100 * time.Millisecond
	// lookAfterFailure is for when the database refuses.
	lookAfterFailure = time.Second
	// mostDue are added in one transaction.
	mostDue = 100
)

// committed is told why the leader has looked for events: a commit may have scheduled one. One of this process can only
// have done so if Schedule was called lately; in a transaction that takes longer it is found by looking anyway.
func (s *scheduledEvents) committed(why reason) {
	if s.cfg.Scheduled == nil || why == byCommit && time.Since(s.cfg.Scheduled.LastScheduled()) > lookAnyway {
		return
	}
	if at := s.lookedAt.Add(lookAfterCommit); at.Before(s.at) {
		s.at = at
	}
}

// add adds what is due. Its error means that the session has ended: what the database refuses otherwise must not keep
// the relay from publishing, and is tried again.
func (s *scheduledEvents) add(ctx context.Context) error {
	s.lookedAt = time.Now()
	err := s.do(ctx, s.addDue)
	if err == nil || s.conn.IsClosed() {
		return err
	}
	s.at = s.lookedAt.Add(lookAfterFailure)
	if _, refused := errors.AsType[*outbox.CheckError](err); !refused { // who keeps writers out says why
		s.cfg.Log.WarnContext(ctx, "scheduled events not added", "error", err)
	}
	return nil
}

// addDue also says when there is something to do again.
func (s *scheduledEvents) addDue(ctx context.Context) error {
	wait, scheduled, err := outbox.NextDue(ctx, s.conn)
	if err != nil {
		return err
	}
	if !scheduled {
		wait = lookAnyway
	}
	s.at = s.lookedAt.Add(min(wait, lookAnyway))
	if wait > 0 {
		return nil
	}
	fault.Here("relay.scheduled.before")
	var added int
	err = pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		added, err = s.cfg.Scheduled.AddDue(ctx, tx, mostDue)
		fault.Here("relay.scheduled.in_tx")
		return err
	})
	if err != nil {
		return fmt.Errorf("add scheduled events: %w", err)
	}
	fault.Here("relay.scheduled.after")
	s.metrics.scheduled.Add(float64(added))
	if added == 0 {
		s.at = s.lookedAt.Add(lookAtHeld)
	}
	return nil
}
