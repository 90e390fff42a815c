package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/relay"
)

// The kinds of audited things.
const (
	kindOutbox    = "outbox"
	kindOutboxKey = "outbox_key"
	kindScheduled = "scheduled_event"
)

func (s handlers) status(ctx context.Context, _ nothing) (adminapi.OutboxStatus, error) {
	return relay.ReadOverview(ctx, s.Pool)
}

const eventColumns = `
select o.position, o.event_id::text, o.event_type as type, o.topic, o.key, o.version, o.occurred_at,
    length(o.payload) as bytes, ` + relay.State + ` as state, `

const tailSQL = eventColumns + `
    case when $5 and sum(length(o.payload)) over (order by o.position desc) <= 8388608 then o.payload end as payload
from public.outbox o cross join public.outbox_cursor c
where o.position >= $6 and o.position < $7
    and ($1 = '' or o.topic = $1) and ($2 = '' or o.key = $2)
    and ($3 = '' or $3 in (o.event_type, split_part(o.event_type, '.', -2)))
order by o.position desc
limit $4`

const keptSQL = `select coalesce(min(position), 0), coalesce(max(position), 0) from public.outbox`

// They take 0.2 s.
const tailPositions = 200_000

// tail reads backwards. A late commit puts its events below ones that were read before.
func (s handlers) tail(
	ctx context.Context, asked adminapi.OutboxQuery,
) (out adminapi.OutboxEvents, err error) {
	asked.Limit = cmp.Or(asked.Limit, defaultLimit)
	var oldest, newest int64
	if err := s.Pool.QueryRow(ctx, keptSQL).Scan(&oldest, &newest); err != nil {
		return out, fmt.Errorf("read positions: %w", err)
	}
	before := min(cmp.Or(asked.After, newest+1), newest+1)
	from := before - tailPositions
	out.Items, err = listEvents[adminapi.OutboxEvent](
		ctx, s.Pool, tailSQL, asked.Topic, asked.Key, asked.Type, asked.Limit, asked.Payload, from, before)
	slices.Reverse(out.Items)
	if err == nil && len(out.Items) < asked.Limit && from > oldest {
		out.Next = from
	}
	return out, err
}

func listEvents[T any](ctx context.Context, db relay.DB, sql string, args ...any) ([]T, error) {
	rows, _ := db.Query(ctx, sql, args...)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		return nil, fmt.Errorf("read outbox: %w", err)
	}
	return found, nil
}

func (s handlers) release(ctx context.Context, tx pgx.Tx, asked adminapi.ReleaseRequest) (audit.Action, error) {
	row := audit.Action{
		Verb: "release", Kind: kindOutboxKey, Subject: asked.Topic + "/" + asked.Key, Before: "parked", After: "released",
	}
	if asked.Drop == 0 {
		return row, relay.Release(ctx, tx, asked.Topic, asked.Key)
	}
	row.Verb, row.After = "drop", "dropped"
	return row, relay.Discard(ctx, tx, asked.Topic, asked.Key, asked.Drop)
}

func (s handlers) pauseRelay(ctx context.Context, tx pgx.Tx, asked adminapi.RelayRequest) (audit.Action, error) {
	row := audit.Action{Verb: "pause", Kind: kindOutbox, Before: "running", After: "paused"}
	return row, relay.Pause(ctx, tx, asked.By, asked.Reason)
}

func (s handlers) resumeRelay(ctx context.Context, tx pgx.Tx, _ adminapi.RelayRequest) (audit.Action, error) {
	ended, err := relay.Resume(ctx, tx)
	return audit.Action{Verb: "resume", Kind: kindOutbox, Before: "paused by " + ended.By, After: "running"}, err
}

var notesOfRefusals = map[string]string{
	relay.RefusedEventsUnknown: noteMails, relay.RefusedVersionsMissing: noteMails,
}

const noteMails = " Mails that this database forgot to have sent go out again."

// confirm returns the refusal's text, which is what a confirmation means.
func (s handlers) confirm(
	ctx context.Context, change audit.Change, asked adminapi.ConfirmRequest,
) (audit.Result, error) {
	result := audit.Result{DryRun: change.DryRun, Count: 1}
	err := change.Make(ctx, s.Pool, func(tx pgx.Tx) (audit.Action, error) {
		refused, err := relay.Confirm(ctx, tx, asked.Code)
		result.Note = refused + notesOfRefusals[asked.Code]
		return audit.Action{
			Verb: "confirm", Kind: kindOutbox, Subject: asked.Code, Before: refused, After: "confirmed",
		}, err
	})
	return result, err
}

func (s handlers) lost(ctx context.Context, asked adminapi.LostQuery) (adminapi.LostEvents, error) {
	page, err := relay.ReadLost(ctx, s.Pool, relay.LostQuery{
		Topic: asked.Topic, Key: asked.Key, After: asked.After, Payload: asked.Payload,
		Limit: cmp.Or(asked.Limit, defaultLimit),
	})
	if errors.Is(err, relay.ErrAfter) {
		err = invalid("after", "is malformed")
	}
	return page, err
}

func (s handlers) scheduled(
	ctx context.Context, asked adminapi.ScheduledQuery,
) (out adminapi.ScheduledEvents, err error) {
	out.Items, out.More, err = page(asked.Limit, func(limit int) ([]adminapi.ScheduledEvent, error) {
		return outbox.Scheduled(ctx, s.Pool, asked.Topic, asked.Key, limit)
	})
	return out, err
}

func (s handlers) cancelScheduled(
	ctx context.Context, tx pgx.Tx, asked adminapi.CancelScheduledRequest,
) (audit.Action, error) {
	event, err := outbox.Cancel(ctx, tx, asked.Name)
	if err == nil && event == nil {
		err = errNotScheduled
	}
	if err != nil {
		return audit.Action{}, err
	}
	return audit.Action{
		Verb: "cancel", Kind: kindScheduled, Subject: asked.Name,
		Before: "due " + event.DueAt.UTC().Format(time.RFC3339), After: "cancelled",
		Detail: map[string]string{"type": event.Type, "topic": event.Topic, "key": event.Key},
	}, nil
}

// republish audits its beginning and its end: the broker knows no transaction.
func (s handlers) republish(
	ctx context.Context, change audit.Change, asked adminapi.RepublishRequest,
) (audit.Result, error) {
	selected := relay.Selection{
		From: asked.From, To: asked.To, Since: asked.Since, Until: asked.Until, IDs: asked.EventIds,
		Topic: asked.Topic, Key: asked.Key,
	}
	switch {
	case selected.IsEmpty():
		return audit.Result{}, relay.ErrEmptySelection
	case asked.To > 0 && asked.From > asked.To:
		return audit.Result{}, invalid("to", "is below from")
	}
	row := change.Action("republish", kindOutbox, "", "", "started")
	row.Count = 0
	if !change.DryRun {
		if err := s.record(ctx, row); err != nil {
			return audit.Result{}, err
		}
	}
	n, err := relay.Republish(ctx, s.Pool, &counting{s.Publisher, change, 0}, selected)
	result := audit.Result{DryRun: change.DryRun, Count: int64(n)}
	if change.DryRun {
		return result, err
	}
	row.Before, row.After, row.Count = row.After, "done", result.Count
	if err != nil {
		row.After = "failed"
		row.Detail["outcome"], row.Detail["code"] = row.After, failure.Examine(err).Code
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), shortTimeout)
	defer cancel()
	return result, errors.Join(err, s.record(late, row))
}

func (s handlers) record(ctx context.Context, row audit.Action) error {
	return pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error { return audit.Record(ctx, tx, row) })
}

type counting struct {
	relay.ContextPublisher

	change audit.Change
	done   int64
}

func (c *counting) PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error {
	if !c.change.DryRun {
		if err := c.ContextPublisher.PublishContext(ctx, topic, msgs...); err != nil {
			return err
		}
	}
	c.done += int64(len(msgs))
	c.change.ReportProgress(c.done, 0)
	return nil
}

// Topics are those that a service writes to.
type Topics interface {
	// Partitions counts the partitions of each existing topic.
	Partitions(ctx context.Context) (map[string]int32, error)
	// Behind counts the records that each group has not read of a topic.
	Behind(ctx context.Context, topic string) (map[string]int64, error)
}

type Records interface {
	ReadLog(ctx context.Context, topic string, partition int32, from, to int64) ([]*message.Message, error)
}

func (s handlers) topics(ctx context.Context, _ nothing) (out adminapi.Topics, err error) {
	found, err := s.Topics.Partitions(ctx)
	if err != nil {
		return out, err
	}
	out.Items = []adminapi.Topic{}
	for _, name := range slices.SortedFunc(maps.Keys(found), compareTopics) {
		behind, err := s.Topics.Behind(ctx, name)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, adminapi.Topic{Topic: name, Partitions: found[name], Behind: behind})
	}
	return out, nil
}

// Copies come last.
func compareTopics(a, b string) int {
	place := func(topic string) string {
		if strings.HasPrefix(topic, event.CopyPrefix) {
			return "~" + topic // above all characters of a topic
		}
		return topic
	}
	return strings.Compare(place(a), place(b))
}
