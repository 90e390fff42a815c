package eventing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/service"
)

// explain adds the reasons of every service. Followers must answer the same, so they ask the database and the broker.
func (n *Node) explain() {
	n.Admin.Explain(
		n.serversDown, n.outboxWaits, n.keysParked, n.partitionsStuck, n.consumersBehind, n.consumersPaused,
		n.deadLetters, n.gaps,
	)
}

func (n *Node) serversDown(context.Context) ([]service.Cause, error) {
	causes := service.DownCause(n.database, service.CodeDown, "",
		"Requests fail, and no event is handled. Nothing is lost.")
	if causes == nil {
		causes = service.DownCause(n.broker, service.CodeDown, service.StationBroker,
			"Requests work, and their events wait in the outbox. Nothing is lost.")
	}
	return causes, nil
}

func (n *Node) outboxWaits(ctx context.Context) (causes []service.Cause, err error) {
	s, err := relay.ReadStatus(ctx, n.Pool)
	if err != nil {
		return nil, err
	}
	waiting := service.Waits(s.Waiting, "event")
	if s.Waiting == relay.MaxWaiting {
		waiting = fmt.Sprintf("%d or more events wait", s.Waiting)
	}
	add := func(since *time.Time, c service.Cause) {
		c.Station, c.Since = service.StationRelay, *cmp.Or(since, &time.Time{})
		causes = append(causes, c)
	}
	switch {
	case s.Refused != nil && s.Refused.Confirmed:
		add(nil, service.Cause{
			Code: "relay_refused", Stops: true, Command: "twinbox outbox status",
			What:  fmt.Sprintf("The relay looks again since %s is confirmed; %s.", s.Refused.Code, waiting),
			Means: s.Refused.Text, Do: "Wait until it has looked.",
		})
	case s.Refused != nil:
		add(nil, service.Cause{
			Code: "relay_refused", Stops: true,
			What:    fmt.Sprintf("Nothing is published until an operator confirms it; %s.", waiting),
			Means:   s.Refused.Text,
			Do:      `Read "A relay that refuses" in docs/operations.md before you confirm it.`,
			Command: "twinbox outbox confirm " + s.Refused.Code + " --service " + n.setup.Service,
		})
	case !s.Leading:
		add(nil, service.Cause{
			Code: "no_leader", Stops: true, Command: "twinbox outbox status",
			What:  fmt.Sprintf("No instance publishes the outbox; the last was %s; %s.", cmp.Or(s.Leader, "none"), waiting),
			Means: "Requests work, and their events wait. Nothing is lost.",
			Do:    "Look at the log of each instance: it has the reason why it does not lead.",
		})
	}
	repair := "the relay has repaired the log"
	if s.Healing > 0 {
		repair = "the relay repairs " + service.Count(s.Healing, "topic-partition")
	}
	if s.DatabaseWentBack {
		add(s.DatabaseBackAt, service.Cause{
			Code: "database_went_back", Command: "twinbox outbox lost",
			What: fmt.Sprintf("The database went back to an earlier state and lost %s; %s.",
				service.Count(s.Lost, "published event"), repair),
			Means: "Consumers keep the effects of events that are lost here.",
			Do:    "Read the list of the lost events, and decide what to take back by hand.",
		})
	}
	if s.BrokerWentBack {
		add(s.BrokerBackAt, service.Cause{
			Code: "broker_went_back", Command: "twinbox verify",
			What:  fmt.Sprintf("The broker lost records that it had acknowledged; %s.", repair),
			Means: "The relay publishes the events again. Consumers skip what they know.",
			Do:    "Verify when the relay has finished.",
		})
	}
	if p := s.Paused; p != nil {
		add(&p.Since, service.Cause{
			Code: "relay_paused", Stops: true, Command: "twinbox outbox resume --service " + n.setup.Service,
			What:  fmt.Sprintf("%s paused publishing: %s; %s.", p.By, p.Reason, waiting),
			Means: "Requests work. Events wait until it is resumed. Nothing is lost.",
			Do:    "Resume it when the reason is gone.",
		})
	}
	if n.isOverdue(s) {
		c := service.Cause{
			Code: service.CodeAtLimit, Command: "twinbox outbox status",
			What:  fmt.Sprintf("The relay publishes less than is added: %s.", waiting),
			Means: "Events come late. Nothing is lost.",
			Do:    "Wait if the number falls. If it grows, look at the broker and at the log of the leader.",
		}
		if silent := n.relay.Healthy(ctx); silent != nil && !errors.Is(silent, context.Canceled) {
			c.What, c.Details = "The relay gets nothing published: "+waiting+".", silent.Error()
		}
		add(s.OldestWaiting, c)
	}
	return causes, nil
}

// isOverdue allows a second for a backlog, and 5 s for a call that takes long.
func (n *Node) isOverdue(s relay.Status) bool {
	batch := int64(n.setup.Config.Outbox.BatchSize)
	return s.Waiting > batch && s.WaitingFor > time.Second || s.Waiting > 0 && s.WaitingFor > 5*time.Second
}

const selectParked = `
select count(*) over (), (sum(h.held) over ())::bigint, k.parked_at, k.topic, k.reason
from public.outbox_parked k
cross join lateral (select count(*) as held from public.outbox_held h where h.topic = k.topic and h.key = k.key) h
order by k.parked_at, k.topic, k.key limit 1`

func (n *Node) keysParked(ctx context.Context) ([]service.Cause, error) {
	rows, _ := n.Pool.Query(ctx, selectParked)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (service.Cause, error) {
		c := service.Cause{
			Code: "keys_parked", Station: service.StationRelay, Command: "twinbox outbox release",
			Means: "These events are not published. Other keys continue.",
			Do: "Mend what the broker complains of. The relay tries each key again within 15 seconds, or when it is " +
				"released.",
		}
		var keys, held int64
		var topic string
		err := row.Scan(&keys, &held, &c.Since, &topic, &c.Details)
		c.What = fmt.Sprintf("%s parked with %s; the first is for %s.",
			service.Count(keys, "key"), service.Count(held, "event"), topic)
		return c, err
	})
}
