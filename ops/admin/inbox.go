package admin

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/engine/deadletter"
	deadletters "example.com/twinbox/engine/deadletter/operate"
	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/engine/inbox/pause"
	"example.com/twinbox/engine/inbox/retention"
	"example.com/twinbox/ops/admin/adminapi"
)

// inboxHandlers answer what is about the inbox.
type inboxHandlers struct {
	Config
	letters *deadletters.Store
	started time.Time
}

// GetInboxStats answers GET /admin/v1/inbox/stats.
func (s inboxHandlers) GetInboxStats(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(ctx context.Context) (adminapi.InboxStats, error) {
		stats, err := retention.ReadStats(ctx, s.Pool)
		if err != nil {
			return adminapi.InboxStats{}, err
		}
		groups, err := s.letters.Groups(ctx, deadletters.Filter{State: deadletter.Waiting})
		if err != nil {
			return adminapi.InboxStats{}, err
		}
		figures, err := s.figures()
		if err != nil {
			return adminapi.InboxStats{}, err
		}
		paused, err := pause.Read(ctx, s.Pool)
		if err != nil {
			return adminapi.InboxStats{}, err
		}
		out := adminapi.InboxStats{
			StartedAt: s.started, RemembersFrom: stats.RemembersFrom, Remembered: stats.Remembered,
		}
		for _, c := range s.Consumers {
			item := *figures[c.Name]
			if p, is := paused[c.Name]; is {
				item.Paused = &adminapi.ConsumerPause{By: p.By, Reason: p.Reason, Since: p.Since}
			}
			for _, g := range groups {
				switch {
				case g.Consumer != c.Name:
				case g.Code == inbox.CodeParked:
					item.Parked += g.Count
				default:
					item.Dead += g.Count
				}
			}
			out.Items = append(out.Items, item)
		}
		return out, nil
	})
}

// figures are what the metrics say of the consumers: the deliveries to this process, and what waits on the log. To
// count outcomes in the table would be to read all of it, and duplicates leave nothing there.
func (s inboxHandlers) figures() (map[string]*adminapi.ConsumerStats, error) {
	families, err := s.Metrics.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	stats := map[string]*adminapi.ConsumerStats{}
	for _, c := range s.Consumers {
		stats[c.Name] = &adminapi.ConsumerStats{Consumer: c.Name, Outcomes: map[string]int64{}}
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := prometheus.Labels{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			of, known := stats[labels["consumer"]]
			if !known {
				continue
			}
			switch family.GetName() {
			case "inbox_messages_total":
				of.Outcomes[labels["outcome"]] = int64(metric.GetCounter().GetValue())
			case "kafka_consumer_lag_records": // of one partition
				of.LagRecords = addTo(of.LagRecords, int64(metric.GetGauge().GetValue()))
			case "kafka_consumer_lag_seconds":
				of.LagSeconds = largest(of.LagSeconds, metric.GetGauge().GetValue())
			}
		}
	}
	return stats, nil
}

func addTo(sum *int64, n int64) *int64 {
	if sum != nil {
		n += *sum
	}
	return &n
}

func largest(known *float64, value float64) *float64 {
	if known != nil {
		value = max(value, *known)
	}
	return &value
}

// LookupInboxEvent answers GET /admin/v1/inbox/events.
func (s inboxHandlers) LookupInboxEvent(w http.ResponseWriter, r *http.Request, p adminapi.LookupInboxEventParams) {
	answer(w, r, func(ctx context.Context) (adminapi.InboxEvents, error) {
		if n := utf8.RuneCountInString(p.EventId); n == 0 || n > 255 {
			return adminapi.InboxEvents{}, invalidParameter("event_id", "does not have 1 to 255 characters")
		}
		names := s.consumerNames()
		found, err := inbox.Lookup(ctx, s.Pool, names, p.EventId)
		if err != nil {
			return adminapi.InboxEvents{}, err
		}
		var letters []deadletters.Known
		for _, name := range names {
			of, err := s.letters.OfEvent(ctx, name, p.EventId)
			if err != nil {
				return adminapi.InboxEvents{}, err
			}
			letters = append(letters, of...)
		}
		return adminapi.InboxEvents{Items: whatBecame(found, letters)}, nil
	})
}

// whatBecame joins what the inbox remembers with the dead letters, which know more where there is one.
func whatBecame(found []inbox.Remembered, letters []deadletters.Known) []adminapi.InboxEvent {
	items := []adminapi.InboxEvent{}
	for _, f := range found {
		hash := hex.EncodeToString(f.PayloadHash)
		items = append(items, adminapi.InboxEvent{
			Consumer: f.Consumer, EventId: f.EventID, Type: &f.EventType, Outcome: string(f.Outcome),
			ProcessedAt: &f.ProcessedAt, PayloadHash: &hash, Topic: &f.Topic, Partition: &f.Partition, Offset: &f.Offset,
			Conflict: optional(f.Conflict), Metadata: f.Metadata,
		})
	}
	for _, l := range letters {
		i := slices.IndexFunc(found, func(f inbox.Remembered) bool { return sameRecord(f, l) })
		if i < 0 {
			i = len(items)
			items = append(items, adminapi.InboxEvent{
				Consumer: l.Consumer, EventId: l.EventID, Type: &l.EventType, ProcessedAt: &l.FailedAt, Topic: &l.Topic,
				Partition: &l.Partition, Offset: &l.Offset,
			})
		}
		items[i].Outcome, items[i].DeadLetter = letterOutcome(l.Summary), &l.ID
	}
	return items
}

// sameRecord tells the dead letter of an event from one of another record that came under its id: the inbox remembers
// what came, or what an operator put in its place.
func sameRecord(f inbox.Remembered, l deadletters.Known) bool {
	return f.Consumer == l.Consumer && (bytes.Equal(f.PayloadHash, l.Came) || bytes.Equal(f.PayloadHash, l.Current))
}

// letterOutcome is what became of an event that is a dead letter.
func letterOutcome(l deadletters.Summary) string {
	switch {
	case l.State != deadletter.Waiting && l.Outcome != "":
		return string(l.State) + ", " + l.Outcome
	case l.State != deadletter.Waiting:
		return string(l.State)
	case l.Code == inbox.CodeGap, l.Code == inbox.CodeJump:
		return string(inbox.Gap)
	case l.Parked():
		return string(inbox.Parked)
	case l.Code == inbox.CodeConflict:
		return string(inbox.Conflict)
	case l.Code == inbox.CodeTooOld:
		return string(inbox.Expired)
	}
	return string(inbox.Dead)
}
