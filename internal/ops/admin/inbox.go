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

func (s handlers) stats(ctx context.Context, _ nothing) (out adminapi.InboxStats, err error) {
	groups, err := s.letters.Groups(ctx, deadletter.Filter{State: deadletter.Waiting})
	if err != nil {
		return out, err
	}
	paused, err := inbox.ReadPaused(ctx, s.Pool)
	if err != nil {
		return out, err
	}
	items, err := s.figures()
	for i := range items {
		item := &items[i]
		if p, is := paused[item.Consumer]; is {
			item.Paused = &p
		}
		for _, g := range groups {
			switch {
			case g.Consumer != item.Consumer:
			case g.Code == inbox.CodeParked, g.Code == inbox.CodeGap:
				item.Parked += g.Count
			default:
				item.Dead += g.Count
			}
		}
	}
	return adminapi.InboxStats{StartedAt: s.started, Items: items}, err
}

// figures come from the metrics: duplicates leave no row.
func (s handlers) figures() ([]adminapi.ConsumerStats, error) {
	found, err := gather(s.Metrics)
	if err != nil {
		return nil, err
	}
	stats := make([]adminapi.ConsumerStats, len(s.Consumers))
	for i, c := range s.Consumers {
		of := found.having("consumer", c.Name)
		stats[i] = adminapi.ConsumerStats{
			Consumer: c.Name, Outcomes: map[string]int64{}, LagSeconds: of.highest("kafka_consumer_lag_seconds"),
		}
		if records := of.sum("kafka_consumer_lag_records"); records != nil {
			stats[i].LagRecords = new(int64(*records))
		}
		for _, outcome := range of.values("inbox_messages_total", "outcome") {
			stats[i].Outcomes[outcome] = int64(known(of.having("outcome", outcome).sum("inbox_messages_total")))
		}
	}
	return stats, nil
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
	if !asked.Until.IsZero() && !asked.Until.After(asked.Since) {
		return out, invalid("until", "is not after since")
	}
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
