package admin

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

// stats come from the metrics: duplicates leave no row.
func (s handlers) stats(ctx context.Context, _ nothing) (out adminapi.InboxStats, err error) {
	paused, err := inbox.ReadPaused(ctx, s.Pool)
	if err != nil {
		return out, err
	}
	found, err := gather(s.Metrics)
	if err != nil {
		return out, err
	}
	out = adminapi.InboxStats{StartedAt: s.started, Items: make([]adminapi.ConsumerStats, len(s.Consumers))}
	for i, c := range s.Consumers {
		of := found.having("consumer", c.Name)
		item := adminapi.ConsumerStats{
			Consumer: c.Name, Outcomes: map[string]int64{}, LagSeconds: of.highest("kafka_consumer_lag_seconds"),
			LagRecords: whole(of.sum("kafka_consumer_lag_records")),
			Dead:       whole(of.having("state", "dead").sum("dead_letters_waiting")),
			Parked:     whole(of.having("state", "parked").sum("dead_letters_waiting")),
		}
		for _, outcome := range of.values("inbox_messages_total", "outcome") {
			item.Outcomes[outcome] = *whole(of.having("outcome", outcome).sum("inbox_messages_total"))
		}
		if p, is := paused[c.Name]; is {
			item.Paused = &p
		}
		out.Items[i] = item
	}
	return out, nil
}

func whole(figure *float64) *int64 {
	if figure == nil {
		return nil
	}
	return new(int64(*figure))
}

func known(figure *float64) float64 { return *cmp.Or(figure, new(0.0)) }

func (s handlers) lookup(
	ctx context.Context, asked adminapi.LookupQuery,
) (out adminapi.InboxEvents, err error) {
	found, err := inbox.Lookup(ctx, s.Pool, s.consumerNames(), asked.EventID)
	if err != nil {
		return out, err
	}
	out.Items = inboxEvents(found)
	for _, consumer := range s.consumerNames() {
		letters, err := s.letters.Summaries(ctx, deadletter.Filter{Consumer: consumer, EventID: asked.EventID})
		if err != nil {
			return out, err
		}
		for _, l := range letters {
			out.Items = append(out.Items, adminapi.InboxEvent{
				Consumer: l.Consumer, EventID: l.EventID, Type: l.Type, ProcessedAt: l.FailedAt, Topic: l.Topic,
				Partition: l.Partition, Offset: l.Offset, DeadLetter: l.ID,
				Outcome: string(l.State) + ", " + cmp.Or(l.Outcome, l.Code),
			})
		}
	}
	return out, nil
}

func (s handlers) history(
	ctx context.Context, asked adminapi.HistoryQuery,
) (out adminapi.InboxHistory, err error) {
	consumers := s.consumerNames()
	if asked.Consumer != "" {
		if !slices.Contains(consumers, asked.Consumer) {
			return out, errNoConsumer
		}
		consumers = []string{asked.Consumer}
	}
	out.Items, out.More, err = page(asked.Limit, func(limit int) (items []adminapi.InboxEvent, err error) {
		found, unread, err := inbox.History(ctx, s.Pool, inbox.HistoryFilter{
			Consumers: consumers, EventType: asked.Type, Since: asked.Since, Until: asked.Until, Limit: limit,
		})
		out.Unread = unread
		return inboxEvents(found), err
	})
	return out, err
}

func inboxEvents(found []inbox.Remembered) []adminapi.InboxEvent {
	items := make([]adminapi.InboxEvent, len(found))
	for i, f := range found {
		items[i] = adminapi.InboxEvent{
			Consumer: f.Consumer, EventID: f.EventID, Type: f.EventType, Outcome: string(f.Outcome),
			ProcessedAt: f.ProcessedAt, ProcessingTimeMs: f.Took, PayloadHash: hex.EncodeToString(f.PayloadHash),
			Topic: f.Topic, Partition: f.Partition, Offset: f.Offset, Metadata: f.Metadata,
		}
	}
	return items
}

func (s handlers) pauseConsumer(
	ctx context.Context, tx pgx.Tx, asked adminapi.ConsumerRequest,
) (audit.Action, error) {
	if !slices.Contains(s.consumerNames(), asked.Consumer) {
		return audit.Action{}, errNoConsumer
	}
	err := inbox.PauseConsumer(ctx, tx, asked.Consumer, asked.By, asked.Reason)
	return audit.Action{
		Verb: "pause", Kind: "consumer", Subject: asked.Consumer, Before: "running", After: "paused",
	}, err
}

func (s handlers) resumeConsumer(
	ctx context.Context, tx pgx.Tx, asked adminapi.ConsumerRequest,
) (audit.Action, error) {
	if !slices.Contains(s.consumerNames(), asked.Consumer) {
		return audit.Action{}, errNoConsumer
	}
	ended, err := inbox.ResumeConsumer(ctx, tx, asked.Consumer)
	return audit.Action{
		Verb: "resume", Kind: "consumer", Subject: asked.Consumer, Before: "paused by " + ended.By, After: "running",
	}, err
}
