package eventing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/circuit"
)

// A healthy service has continued after these times.
const (
	outboxPatience = time.Second
	outboxSilence  = 5 * time.Second
	stuckPatience  = 2 * time.Second
	recordPatience = 5 * time.Second
	parkedPatience = 20 * time.Second
)

// A Reason finds the causes of one kind that hold.
type Reason func(ctx context.Context) ([]service.Cause, error)

// Explain adds the service's own reasons. Call it before Run.
func (n *Node) Explain(reasons ...Reason) { n.reasons = append(n.reasons, reasons...) }

// diagnose returns why events wait or may be lost, the worst first. Followers must answer the same, so it asks the
// database and the broker.
func (n *Node) diagnose(ctx context.Context) []service.Cause {
	reasons := slices.Concat([]Reason{
		n.serversDown, n.whyOutboxWaits, n.keysParked, n.partitionsStuck, n.consumersBehind, n.consumersPaused,
		n.deadLetters, n.gaps,
	}, n.reasons)
	found, errs := make([][]service.Cause, len(reasons)), make([]error, len(reasons))
	var all sync.WaitGroup
	for i, reason := range reasons {
		all.Go(func() {
			errs[i] = service.RunProtected(ctx, func(ctx context.Context) (err error) {
				found[i], err = reason(ctx)
				return err
			})
		})
	}
	all.Wait()
	causes := withoutConsequences(slices.Concat(found...))
	isOutage := slices.ContainsFunc(causes, func(c service.Cause) bool { return c.Code == codeDown })
	for _, err := range errs {
		n.report(err)
	}
	if err := errors.Join(errs...); err != nil && !isOutage {
		causes = append(causes, service.Unknown(err))
	}
	for i := range causes {
		causes[i].Details = failure.Brief(causes[i].Details)
	}
	slices.SortStableFunc(causes, func(a, b service.Cause) int { return rankOf(a.Code) - rankOf(b.Code) })
	return causes
}

func withoutConsequences(causes []service.Cause) []service.Cause {
	return slices.DeleteFunc(slices.Clone(causes), func(c service.Cause) bool {
		isDelay := c.Code == codeAtLimit || c.Code == codeBehind
		return isDelay && slices.ContainsFunc(causes, func(by service.Cause) bool {
			return by.Stops && Concerns(by, c.Station)
		})
	})
}

// Concerns reports whether a cause affects a station, alone or with others.
func Concerns(c service.Cause, station string) bool {
	kind, _, _ := strings.Cut(station, "/")
	usesBroker := kind == StationRelay || kind == "inbox" || kind == "topic"
	return c.Station == "" || c.Station == station || c.Station == StationBroker && usesBroker
}

func (n *Node) serversDown(ctx context.Context) ([]service.Cause, error) {
	causes := DownCause(n.database, codeDown, "", "Requests fail, and no event is handled. Nothing is lost.")
	if causes != nil {
		return causes, nil
	}
	if n.broker.Down() {
		backlog := "Events wait"
		if s, err := relay.ReadStatus(ctx, n.Pool); err == nil {
			backlog = waiting(s)
		}
		return DownCause(n.broker, codeDown, StationBroker, "Requests work. "+backlog+" in the outbox. Nothing is lost."), nil
	}
	return nil, nil
}

// DownCause returns a cause while a server is down.
func DownCause(server *circuit.Circuit, code, station, means string) []service.Cause {
	down, is := errors.AsType[*circuit.DownError](server.Err())
	if !is {
		return nil
	}
	c := newCause(codeDown, station, down.Since, "The "+down.Name+" is down.")
	c.Code, c.Means, c.Details = code, means, down.Err.Error()
	return []service.Cause{c}
}

func (n *Node) whyOutboxWaits(ctx context.Context) (causes []service.Cause, err error) {
	s, err := relay.ReadStatus(ctx, n.Pool)
	if err != nil {
		return nil, err
	}
	add := func(code string, since *time.Time, what string, args ...any) *service.Cause {
		causes = append(causes, newCause(code, StationRelay, *cmp.Or(since, &time.Time{}), fmt.Sprintf(what, args...)))
		return &causes[len(causes)-1]
	}
	if s.Refused != nil {
		c := add("relay_refused", nil, "Nothing is published until an operator confirms it; %s.", waiting(s))
		c.Means, c.Command = s.Refused.Text, "twinbox outbox confirm "+s.Refused.Code+" --service "+n.setup.Service
		if s.Refused.Confirmed {
			c.What = fmt.Sprintf("The relay looks again since %s is confirmed; %s.", s.Refused.Code, waiting(s))
			c.Command = "twinbox outbox status"
		}
	} else if !s.Leading {
		add("no_leader", nil, "No instance publishes the outbox; the last was %s; %s.", cmp.Or(s.Leader, "none"), waiting(s))
	}
	repair := "the relay has repaired the log"
	if s.Healing > 0 {
		repair = fmt.Sprintf("the relay repairs %s", Count(s.Healing, "topic-partition"))
	}
	if s.DatabaseWentBack {
		add("database_went_back", s.DatabaseBackAt, "The database went back to an earlier state and lost %s; %s.",
			Count(s.Lost, "published event"), repair)
	}
	if s.BrokerWentBack {
		add("broker_went_back", s.BrokerBackAt, "The broker lost records that it had acknowledged; %s.", repair)
	}
	if p := s.Paused; p != nil {
		c := add("relay_paused", &p.Since, "%s paused publishing: %s; %s.", p.By, p.Reason, waiting(s))
		c.Command = "twinbox outbox resume --service " + n.setup.Service
	}
	// An event may be on its way at the first read.
	if n.isOverdue(s) {
		if s, err = relay.ReadStatus(ctx, n.Pool); err == nil && n.isOverdue(s) {
			c := add(codeAtLimit, s.OldestWaiting, "The relay publishes less than is added: %s.", waiting(s))
			if silent := n.relay.Healthy(ctx); silent != nil && !errors.Is(silent, context.Canceled) {
				c.What, c.Details = "The relay gets nothing published: "+waiting(s)+".", silent.Error()
			}
		}
	}
	return causes, err
}

func (n *Node) isOverdue(s relay.Status) bool {
	batch := int64(n.setup.Config.Outbox.BatchSize)
	return s.Waiting > batch && s.WaitingFor > outboxPatience || s.Waiting > 0 && s.WaitingFor > outboxSilence
}

const selectParked = `
select count(*) over (), (sum(h.held) over ())::bigint, k.parked_at, k.topic, k.reason
from public.outbox_parked k
cross join lateral (select count(*) as held from public.outbox_held h where h.topic = k.topic and h.key = k.key) h
where k.permanent or $1
order by k.parked_at, k.topic, k.key limit 1`

// After an outage keysParked ignores keys that the relay has not tried again.
func (n *Node) keysParked(ctx context.Context) ([]service.Cause, error) {
	areTriedAgain := time.Since(time.Unix(n.brokerBack.Load(), 0)) >= parkedPatience
	rows, _ := n.Pool.Query(ctx, selectParked, areTriedAgain)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (service.Cause, error) {
		var keys, held int64
		var since time.Time
		var topic, reason string
		err := row.Scan(&keys, &held, &since, &topic, &reason)
		c := newCause("keys_parked", StationRelay, since, fmt.Sprintf(
			"%s parked with %s; the first is for %s.", Count(keys, "key"), Count(held, "event"), topic))
		c.Details = reason
		return c, err
	})
}

var stuck = []struct {
	code, what string
	patience   time.Duration
	look       func(kafka.Standing) (since time.Time, err error)
}{
	{
		"record_refused", "%s cannot read %s/%d.", stuckPatience,
		func(s kafka.Standing) (time.Time, error) { return s.Refused, s.Refusal },
	},
	{
		"attempt_failing", "%s fails at the next record of %s/%d and tries again.", 0,
		func(s kafka.Standing) (time.Time, error) { return s.Failing, s.Failure },
	},
	{
		"handler_slow", "The handler of %s is still at the same records of %s/%d.", stuckPatience,
		func(s kafka.Standing) (time.Time, error) { return s.Handling, nil },
	},
}

func (n *Node) partitionsStuck(context.Context) (causes []service.Cause, _ error) {
	for _, c := range n.consumers {
		for _, kind := range stuck {
			var worst service.Cause
			for _, s := range c.member.Load().Standings() {
				since, err := kind.look(s)
				if since.IsZero() || time.Since(since) < kind.patience || worst.Code != "" && !since.Before(worst.Since) {
					continue
				}
				what := fmt.Sprintf(kind.what, c.Name, s.Topic, s.Partition)
				worst = newCause(kind.code, StationInbox+c.Name, since, what)
				if err != nil {
					worst.Details = failure.Examine(err).Code + ": " + err.Error()
				}
			}
			if worst.Code != "" {
				causes = append(causes, worst)
			}
		}
	}
	return causes, nil
}

// consumersBehind reports partitions without an owner, else those where records wait. During a rebalance only
// partitions with waiting records count. A broker that is down is not asked.
func (n *Node) consumersBehind(ctx context.Context) (causes []service.Cause, err error) {
	if n.broker.Down() {
		return nil, nil
	}
	for _, c := range n.consumers {
		lags, notRead := kafka.ReadLag(ctx, n.setup.lagClient(), c.group, c.Topic, c.inbox)
		owners, notKnown := kafka.ReadOwners(ctx, n.setup.lagClient(), c.group, c.Topic)
		if notRead != nil || notKnown != nil {
			err = errors.Join(err, notRead, notKnown)
			continue
		}
		var free, behind, records int64
		var oldest kafka.Lag
		for _, l := range lags {
			records += l.Records
			if _, owned := owners.By[l.Partition]; !owned && (l.Records > 0 || owners.State == kafka.Stable) {
				free++
			}
			if l.Age >= recordPatience {
				behind++
			}
			if l.Age > oldest.Age {
				oldest = l
			}
		}
		var since time.Time
		if oldest.Age > 0 {
			since = time.Now().Add(-oldest.Age)
		}
		switch {
		case free > 0:
			causes = append(causes, newCause("partition_without_owner", StationInbox+c.Name, since, fmt.Sprintf(
				"No instance of %s reads %s of %s; %s.", c.Name, Count(free, "partition"), c.Topic, Waits(records, "record"))))
		case behind > 0:
			causes = append(causes, newCause(codeBehind, StationInbox+c.Name, since, fmt.Sprintf(
				"%s is behind: %s, the first in %s/%d, which %s reads.", c.Name, Waits(records, "record"), c.Topic,
				oldest.Partition, owners.By[oldest.Partition])))
		}
	}
	return causes, err
}

func (n *Node) consumersPaused(ctx context.Context) (causes []service.Cause, _ error) {
	paused, err := inbox.ReadPaused(ctx, n.Pool)
	for _, name := range n.consumerNames() {
		if p, is := paused[name]; is {
			c := newCause("consumer_paused", StationInbox+name, p.Since, fmt.Sprintf("%s paused %s: %s.", p.By, name, p.Reason))
			c.Command = "twinbox consumer resume " + name
			causes = append(causes, c)
		}
	}
	return causes, err
}

// Parked events wait for others, and a gap has a cause of its own.
const selectDead = `
select consumer, count(*) filter (where died), count(distinct key) filter (where died),
    count(*) filter (where not died), min(first_failed_at) filter (where died),
    mode() within group (order by code) filter (where died), coalesce(max(left(error, 1000)) filter (where died), '')
from (select consumer, key, error, code, first_failed_at, code <> '` + inbox.CodeParked + `' as died
    from public.dead_letter where state = 'waiting' and code <> '` + inbox.CodeGap + `') waiting
group by consumer having bool_or(died) order by consumer`

func (n *Node) deadLetters(ctx context.Context) ([]service.Cause, error) {
	rows, _ := n.Pool.Query(ctx, selectDead)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (service.Cause, error) {
		var consumer, reason, details string
		var dead, keys, behind int64
		var since time.Time
		err := row.Scan(&consumer, &dead, &keys, &behind, &since, &reason, &details)
		what := fmt.Sprintf("%s has %s of %s, most often %s",
			consumer, Count(dead, "dead letter"), Count(keys, "key"), reason)
		if behind > 0 {
			what += "; " + Waits(behind, "event") + " behind"
		}
		c := newCause("dead_letters", StationInbox+consumer, since, what+".")
		c.Details = details
		return c, err
	})
}

// An event whose missing version has come is resumed within seconds and does not count. Only parked events have a text
// key for certain.
const selectGaps = `
select d.consumer, count(distinct d.key_start), count(*), min(d.first_failed_at), coalesce(min(left(error, 1000)), '')
from public.dead_letter d
where d.state = 'waiting' and d.class = 'parked' and d.code = '` + inbox.CodeGap + `' and not exists (
    select from public.inbox_key k
    where k.consumer = d.consumer and k.version >= d.version - 1
        and k.key = case when d.class = 'parked' then convert_from(d.key_start, 'UTF8') end)
group by d.consumer order by d.consumer`

func (n *Node) gaps(ctx context.Context) ([]service.Cause, error) {
	rows, _ := n.Pool.Query(ctx, selectGaps)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (service.Cause, error) {
		var consumer, details string
		var keys, events int64
		var since time.Time
		err := row.Scan(&consumer, &keys, &events, &since, &details)
		c := newCause("waits_for_gap", StationInbox+consumer, since, fmt.Sprintf("%s misses an earlier version of %s; %s.",
			consumer, Count(keys, "key"), Waits(events, "event")))
		c.Details = details
		return c, err
	})
}

func waiting(s relay.Status) string {
	if s.Waiting == relay.MaxWaiting {
		return fmt.Sprintf("%d or more events wait", s.Waiting)
	}
	return Waits(s.Waiting, "event")
}

// Waits returns "1 event waits", "2 events wait".
func Waits(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing + " waits"
	}
	return Count(n, thing) + " wait"
}

// Count returns "1 event", "2 events".
func Count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
