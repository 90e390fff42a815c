package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/outbox/operate"
)

// outboxHandlers answer what is about the outbox and its topics.
type outboxHandlers struct{ Config }

// What the audit trail calls the things of an outbox.
const (
	kindOutbox    = "outbox"
	kindOutboxKey = "outbox_key"
	kindTopic     = "topic"
	kindScheduled = "scheduled_event"
)

func (s outboxHandlers) status(ctx context.Context, _ nothing) (adminapi.OutboxStatus, error) {
	return operate.ReadOverview(ctx, s.Pool)
}

func (s outboxHandlers) tail(
	ctx context.Context, asked adminapi.TailOutboxParams,
) (out adminapi.OutboxEvents, err error) {
	asked.Limit = cmp.Or(asked.Limit, defaultLimit)
	out.Items, out.Rest, err = operate.ReadTail(ctx, s.Pool, operate.Tail(asked))
	return out, err
}

func (s outboxHandlers) release(ctx context.Context, tx pgx.Tx, asked adminapi.ReleaseRequest) (audit.Action, error) {
	row := audit.Action{
		Verb: "release", Kind: kindOutboxKey, Subject: asked.Topic + "/" + asked.Key, Before: "parked", After: "released",
	}
	if asked.Drop == 0 {
		return row, operate.Release(ctx, tx, asked.Topic, asked.Key)
	}
	row.Verb, row.After = "drop", "dropped"
	return row, operate.Discard(ctx, tx, asked.Topic, asked.Key, asked.Drop)
}

func (s outboxHandlers) scheduled(
	ctx context.Context, asked adminapi.ListScheduledParams,
) (out adminapi.ScheduledEvents, err error) {
	out.Items, out.More, err = page(asked.Limit, func(limit int) ([]adminapi.ScheduledEvent, error) {
		return operate.Scheduled(ctx, s.Pool, asked.Topic, asked.Key, limit)
	})
	return out, err
}

func (s outboxHandlers) cancelScheduled(
	ctx context.Context, tx pgx.Tx, asked adminapi.CancelScheduledRequest,
) (audit.Action, error) {
	event, err := operate.CancelScheduled(ctx, tx, asked.Name)
	return audit.Action{
		Verb: "cancel", Kind: kindScheduled, Subject: asked.Name,
		Before: "due " + event.DueAt.UTC().Format(time.RFC3339), After: "cancelled",
		Detail: map[string]string{"type": event.Type, "topic": event.Topic, "key": event.Key},
	}, err
}

// republish leaves two audit rows: the broker knows no transaction, so one says that it began and one how it ended.
func (s outboxHandlers) republish(
	ctx context.Context, change audit.Change, asked adminapi.RepublishRequest,
) (audit.Result, error) {
	switch {
	case asked.To > 0 && asked.From > asked.To:
		return audit.Result{}, invalid("to", "is below from")
	case !asked.Until.IsZero() && !asked.Since.Before(asked.Until):
		return audit.Result{}, invalid("until", "is not after since")
	}
	row := change.Action("republish", kindOutbox, "", "", "started")
	if !change.DryRun {
		if err := s.record(ctx, row); err != nil {
			return audit.Result{}, err
		}
	}
	n, err := operate.Republish(ctx, s.Pool, &counting{Publisher: s.Publisher, change: change}, operate.Selection{
		From: asked.From, To: asked.To, Since: asked.Since, Until: asked.Until, IDs: asked.EventIds,
		Topic: asked.Topic, Key: asked.Key,
	})
	result := audit.Result{DryRun: change.DryRun, Count: int64(n)}
	if change.DryRun {
		return result, err
	}
	row.Before, row.After, row.Count = row.After, "done", result.Count
	if err != nil {
		row.After = "failed"
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), shortTimeout)
	defer cancel()
	return result, errors.Join(err, s.record(late, row))
}

func (s outboxHandlers) record(ctx context.Context, row audit.Action) error {
	return pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error { return audit.Record(ctx, tx, row) })
}

// counting tells how much it hands on. In a dry run it only counts.
type counting struct {
	operate.Publisher
	change audit.Change
	done   int64
}

func (c *counting) PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error {
	if !c.change.DryRun {
		if err := c.Publisher.PublishContext(ctx, topic, msgs...); err != nil {
			return err
		}
	}
	c.done += int64(len(msgs))
	c.change.Tell(c.done)
	return nil
}

// Topics is what the broker knows of the topics that a service writes to.
type Topics interface {
	// Partitions is how many partitions the topics have, and others that the service wrote to once; those that do not
	// exist are missing.
	Partitions(ctx context.Context, others ...string) (map[string]int32, error)
	// Behind are the consumer groups that have not read a topic to its end, with the number of records before each.
	Behind(ctx context.Context, topic string) (map[string]int64, error)
}

// topics lists the topics of events, then those for copies of dead letters, then those that the service wrote to and
// that are gone.
func (s outboxHandlers) topics(ctx context.Context, _ nothing) (out adminapi.Topics, err error) {
	recorded, err := operate.TopicPartitions(ctx, s.Pool)
	if err != nil {
		return out, err
	}
	found, err := s.Topics.Partitions(ctx, slices.Collect(maps.Keys(recorded))...)
	if err != nil {
		return out, err
	}
	out.Items = []adminapi.Topic{}
	for _, name := range slices.SortedFunc(maps.Keys(found), compareTopics) {
		behind, err := s.Topics.Behind(ctx, name)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, adminapi.Topic{
			Topic: name, SpreadOver: recorded[name], Partitions: found[name], Behind: behind,
		})
		delete(recorded, name)
	}
	for _, gone := range slices.SortedFunc(maps.Keys(recorded), compareTopics) {
		out.Items = append(out.Items, adminapi.Topic{Topic: gone, SpreadOver: recorded[gone], Behind: map[string]int64{}})
	}
	return out, nil
}

// compareTopics orders by name, with the topics of events before those for copies, whatever the project is called.
func compareTopics(a, b string) int {
	aCopies, bCopies := strings.HasPrefix(a, deadletter.CopyPrefix), strings.HasPrefix(b, deadletter.CopyPrefix)
	switch {
	case aCopies == bCopies:
		return strings.Compare(a, b)
	case bCopies:
		return -1
	}
	return 1
}

func (s outboxHandlers) confirmPartitions(
	ctx context.Context, tx pgx.Tx, asked adminapi.ConfirmPartitionsRequest,
) (audit.Action, error) {
	if err := s.checkDrained(ctx, asked); err != nil {
		return audit.Action{}, err
	}
	before, err := operate.ConfirmPartitions(ctx, tx, asked.Topic, asked.Partitions)
	return audit.Action{
		Verb: "confirm", Kind: kindTopic, Subject: asked.Topic,
		Before: fmt.Sprintf("%d partitions", before), After: fmt.Sprintf("%d partitions", asked.Partitions),
	}, err
}

// checkDrained refuses a number of partitions that the topic does not have, and a topic that a group has not read to
// its end.
func (s outboxHandlers) checkDrained(ctx context.Context, asked adminapi.ConfirmPartitionsRequest) error {
	found, err := s.Topics.Partitions(ctx, asked.Topic)
	if err != nil {
		return err
	}
	have, exists := found[asked.Topic]
	switch {
	case !exists:
		return operate.ErrPartitionsUnchanged
	case have != asked.Partitions:
		return problem(http.StatusConflict, codePartitionCount,
			fmt.Sprintf("The broker says that the topic has %d partitions, not %d.", have, asked.Partitions))
	case asked.Force:
		return nil
	}
	behind, err := s.Topics.Behind(ctx, asked.Topic)
	if err != nil || len(behind) == 0 {
		return err
	}
	group := slices.Min(slices.Collect(maps.Keys(behind)))
	return problem(http.StatusConflict, "not_drained",
		fmt.Sprintf("%d consumer groups have not read the topic to its end; %d records are before %s.",
			len(behind), behind[group], group))
}

// Restore makes a service go on with a database that was restored.
type Restore interface {
	// ConfirmRestore brings back the events that the broker holds and the database does not know, and lets the relay go
	// on. It returns how many there were. A dry run leaves the broker as it is; the caller rolls tx back.
	ConfirmRestore(ctx context.Context, tx pgx.Tx, dryRun bool, progress func(int64)) (int, error)
}

func (s outboxHandlers) confirmRestore(
	ctx context.Context, change audit.Change, _ adminapi.ConfirmRestoreRequest,
) (audit.Result, error) {
	result := audit.Result{DryRun: change.DryRun}
	err := change.Make(ctx, s.Pool, func(tx pgx.Tx) (audit.Action, error) {
		n, err := s.Restore.ConfirmRestore(ctx, tx, change.DryRun, change.Tell)
		result.Count = int64(n)
		return audit.Action{
			Verb: "confirm_restore", Kind: kindOutbox, Before: "restored", After: "confirmed", Count: result.Count,
		}, err
	})
	if err != nil {
		result.Count = 0 // the transaction took everything back
	}
	return result, err
}
