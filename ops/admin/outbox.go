package admin

import (
	"context"
	"errors"
	"net/http"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/outbox/operate"
	"example.com/twinbox/ops/admin/adminapi"
)

// outboxHandlers answer what is about the outbox and its topics.
type outboxHandlers struct{ Config }

// GetOutboxStatus answers GET /admin/v1/outbox/status.
func (s outboxHandlers) GetOutboxStatus(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(ctx context.Context) (adminapi.OutboxStatus, error) {
		status, err := operate.ReadStatus(ctx, s.Pool)
		if err != nil {
			return adminapi.OutboxStatus{}, err
		}
		parked, err := operate.Parked(ctx, s.Pool, maxLimit)
		if err != nil {
			return adminapi.OutboxStatus{}, err
		}
		return outboxStatus(status, parked), nil
	})
}

func outboxStatus(s operate.Status, parked []operate.ParkedKey) adminapi.OutboxStatus {
	out := adminapi.OutboxStatus{
		Leader: s.Leader, Leading: s.Leading, Epoch: s.Epoch, LeaseUntil: s.LeaseUntil, Head: s.Head,
		Waiting: s.Waiting, WaitingMore: s.Waiting == operate.MaxWaiting, OldestWaiting: s.OldestWaiting,
		Held: s.HeldEvents, Scheduled: s.Scheduled, OverdueSeconds: s.OverdueFor.Seconds(),
		Restoring: s.Restoring, Parked: make([]adminapi.ParkedKey, len(parked)),
	}
	for i, p := range parked {
		out.Parked[i] = adminapi.ParkedKey{
			Topic: p.Topic, Key: p.Key, Reason: p.Reason, Permanent: p.Permanent, Attempts: p.Attempts,
			ParkedAt: p.ParkedAt, RetryAt: p.RetryAt, Held: p.Held, Position: p.Position,
		}
	}
	return out
}

// TailOutbox answers GET /admin/v1/outbox/events.
func (s outboxHandlers) TailOutbox(w http.ResponseWriter, r *http.Request, params adminapi.TailOutboxParams) {
	answer(w, r, func(ctx context.Context) (adminapi.OutboxEvents, error) {
		limit, err := limitOf(params.Limit)
		if err != nil {
			return adminapi.OutboxEvents{}, err
		}
		before := value(params.Before)
		if params.Before != nil && before < 1 {
			return adminapi.OutboxEvents{}, invalidParameter("before", "is no position: those begin at 1")
		}
		entries, rest, err := operate.ReadTail(ctx, s.Pool, operate.Tail{
			Topic: value(params.Topic), Key: value(params.Key), Type: value(params.Type),
			Before: before, Limit: limit, Payload: value(params.Payload),
		})
		out := adminapi.OutboxEvents{Rest: optional(rest), Items: make([]adminapi.OutboxEvent, len(entries))}
		for i, e := range entries {
			out.Items[i] = adminapi.OutboxEvent{
				Position: e.Position, EventId: e.EventID, Type: e.Type, Topic: e.Topic, Key: e.Key, Version: e.Version,
				OccurredAt: e.OccurredAt, Bytes: e.Bytes, State: adminapi.OutboxEventState(e.State),
			}
			if e.Payload != nil {
				out.Items[i].Payload = &e.Payload
			}
		}
		return out, err
	})
}

// RepublishOutbox answers POST /admin/v1/outbox/republish.
func (s outboxHandlers) RepublishOutbox(w http.ResponseWriter, r *http.Request) {
	streamChange(w, r, func(
		ctx context.Context, act action, request adminapi.RepublishRequest, progress func(int64),
	) (adminapi.Result, error) {
		selection, err := selectionOf(request)
		if err != nil {
			return adminapi.Result{}, err
		}
		return s.republish(ctx, act, selection, progress)
	})
}

func selectionOf(r adminapi.RepublishRequest) (operate.Selection, error) {
	s := operate.Selection{
		From: value(r.From), To: value(r.To), Since: value(r.Since), Until: value(r.Until), IDs: value(r.EventIds),
		Topic: value(r.Topic), Key: value(r.Key),
	}
	for _, id := range s.IDs {
		if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
			return s, invalid("event_ids", "holds what is no lower-case UUID")
		}
	}
	if s.To > 0 && s.From > s.To {
		return s, invalid("to", "is below from")
	}
	if !s.Until.IsZero() && !s.Since.Before(s.Until) {
		return s, invalid("until", "is not after since")
	}
	return s, nil
}

// republish leaves two audit rows: the broker knows no transaction, so one says that it began and one how it ended.
func (s outboxHandlers) republish(
	ctx context.Context, act action, selection operate.Selection, progress func(int64),
) (adminapi.Result, error) {
	publisher := &counting{publisher: s.Publisher, progress: progress}
	if act.dryRun {
		publisher.publisher = nil
		n, err := operate.Republish(ctx, s.Pool, publisher, selection)
		return adminapi.Result{DryRun: true, Count: int64(n)}, err
	}
	row := audit.Action{By: act.by, Reason: act.reason, Verb: "republish", Kind: kindOutbox, After: "started"}
	if err := s.record(ctx, row); err != nil {
		return adminapi.Result{}, err
	}
	n, err := operate.Republish(ctx, s.Pool, publisher, selection)
	row.Before, row.After, row.Count = row.After, "done", int64(n)
	if err != nil {
		row.After = "failed"
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), shortTimeout)
	defer cancel()
	return adminapi.Result{Count: int64(n)}, errors.Join(err, s.record(late, row))
}

func (s outboxHandlers) record(ctx context.Context, row audit.Action) error {
	return pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error { return audit.Record(ctx, tx, row) })
}

// counting counts what it hands on. Without a publisher it only counts.
type counting struct {
	publisher message.Publisher
	progress  func(int64)
	done      int64
}

func (c *counting) PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error {
	if err := c.publish(ctx, topic, msgs); err != nil {
		return err
	}
	c.done += int64(len(msgs))
	c.progress(c.done)
	return nil
}

func (c *counting) publish(ctx context.Context, topic string, msgs []*message.Message) error {
	if c.publisher == nil {
		return nil
	}
	if p, ok := c.publisher.(interface {
		PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error
	}); ok {
		return p.PublishContext(ctx, topic, msgs...)
	}
	return c.publisher.Publish(topic, msgs...)
}

// ReleaseOutboxKey answers POST /admin/v1/outbox/release.
func (s outboxHandlers) ReleaseOutboxKey(w http.ResponseWriter, r *http.Request) {
	answerChange(w, r, func(ctx context.Context, act action, request adminapi.ReleaseRequest) (adminapi.Result, error) {
		row := audit.Action{
			Verb: "release", Kind: kindOutboxKey, Subject: request.Topic + "/" + request.Key,
			Before: "parked", After: "released",
		}
		err := s.change(ctx, act, func(tx pgx.Tx) (audit.Action, error) {
			if request.Drop == nil {
				return row, operate.Release(ctx, tx, request.Topic, request.Key)
			}
			row.Verb, row.After = "drop", "dropped"
			return row, operate.Discard(ctx, tx, request.Topic, request.Key, *request.Drop)
		})
		return adminapi.Result{DryRun: act.dryRun, Count: 1}, err
	})
}
