package eventing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
)

// A healthy consumer has continued after these times.
const (
	stuckPatience  = 2 * time.Second
	recordPatience = 5 * time.Second
)

// partitionsStuck reports the oldest trouble of each kind.
func (n *Node) partitionsStuck(context.Context) (causes []service.Cause, _ error) {
	for _, c := range n.consumers {
		var found []service.Cause
		for _, s := range c.member.Load().Standings() {
			at := fmt.Sprintf("%s/%d", s.Topic, s.Partition)
			add := func(since time.Time, patience time.Duration, err error, trouble service.Cause) {
				if since.IsZero() || time.Since(since) < patience {
					return
				}
				if err != nil {
					trouble.Details = failure.Examine(err).Code + ": " + err.Error()
				}
				trouble.Station, trouble.Since, trouble.Stops = service.StationInbox+c.Name, since, true
				trouble.Command = "twinbox inbox stats"
				found = append(found, trouble)
			}
			add(s.Refused, stuckPatience, s.Refusal, service.Cause{
				Code: "record_refused", What: fmt.Sprintf("%s cannot read %s.", c.Name, at),
				Means: "Its events wait on the topic.",
				Do:    "Look at the details: the topic, its records, the right to read it, or the service's database.",
			})
			add(s.Failing, 0, s.Failure, service.Cause{
				Code: "attempt_failing", What: fmt.Sprintf("%s fails at the next record of %s and tries again.", c.Name, at),
				Means: "Later events of the partition wait behind it. Nothing is lost.",
				Do:    "Mend what the handler needs. The next attempt succeeds then.",
			})
			add(s.Handling, stuckPatience, nil, service.Cause{
				Code: "handler_slow", What: fmt.Sprintf("The handler of %s is still at the same records of %s.", c.Name, at),
				Means: "Later events of the partition wait behind it. Nothing is lost.",
				Do:    "Look for a lock or a slow server that the handler waits for.",
			})
		}
		slices.SortFunc(found, func(a, b service.Cause) int {
			return cmp.Or(cmp.Compare(a.Code, b.Code), a.Since.Compare(b.Since))
		})
		causes = append(causes, slices.CompactFunc(found, func(a, b service.Cause) bool { return a.Code == b.Code })...)
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
		lags, notRead := kafka.ReadLag(ctx, n.lagClient(), c.group, c.Topic, c.inbox)
		owners, notKnown := kafka.ReadOwners(ctx, n.lagClient(), c.group, c.Topic)
		if notRead != nil || notKnown != nil {
			err = errors.Join(err, notRead, notKnown)
			n.broker.Report(err)
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
		cause := service.Cause{Station: service.StationInbox + c.Name, Command: "twinbox inbox stats"}
		if oldest.Age > 0 {
			cause.Since = time.Now().Add(-oldest.Age)
		}
		switch {
		case free > 0:
			cause.Code, cause.Stops = "partition_without_owner", true
			cause.What = fmt.Sprintf("No instance of %s reads %s of %s; %s.",
				c.Name, service.Count(free, "partition"), c.Topic, service.Waits(records, "record"))
			cause.Means = "Its events wait on the topic. Nothing is lost."
			cause.Do = "Look at the log of the consumer's instances, and whether one runs."
			causes = append(causes, cause)
		case behind > 0:
			cause.Code = service.CodeBehind
			cause.What = fmt.Sprintf("%s is behind: %s, the first in %s/%d, which %s reads.",
				c.Name, service.Waits(records, "record"), c.Topic, oldest.Partition, owners.By[oldest.Partition])
			cause.Means = "Effects come late. Nothing is lost."
			cause.Do = "Wait if the number falls. If it grows, add instances or make the handler quicker."
			causes = append(causes, cause)
		}
	}
	return causes, err
}

func (n *Node) consumersPaused(context.Context) (causes []service.Cause, _ error) {
	paused, err := n.pauses.Get()
	for _, c := range n.consumers {
		if p, is := paused[c.Name]; is {
			causes = append(causes, service.Cause{
				Code: "consumer_paused", Station: service.StationInbox + c.Name, Since: p.Since, Stops: true,
				What:    fmt.Sprintf("%s paused %s: %s.", p.By, c.Name, p.Reason),
				Means:   "Its events wait until it is resumed (twinbox inbox stats counts them). Nothing is lost.",
				Do:      "Resume it when the reason is gone.",
				Command: "twinbox consumer resume " + c.Name,
			})
		}
	}
	return causes, err
}

// Parked events wait for others, and a gap has a cause of its own.
const selectDead = `
select consumer, count(*) filter (where died), count(distinct nullif(key, '')) filter (where died),
    count(*) filter (where not died), min(first_failed_at) filter (where died),
    mode() within group (order by code) filter (where died), coalesce(max(left(error, 1000)) filter (where died), '')
from (select consumer, key, error, code, first_failed_at, code <> '` + inbox.CodeParked + `' as died
    from public.dead_letter where state = 'waiting' and code <> '` + inbox.CodeGap + `') waiting
group by consumer having bool_or(died) order by consumer`

func (n *Node) deadLetters(ctx context.Context) ([]service.Cause, error) {
	rows, _ := n.Pool.Query(ctx, selectDead)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (service.Cause, error) {
		c := service.Cause{
			Code: "dead_letters", Command: "twinbox dlq list",
			Means: "These events have had no effect, nor have those that wait behind them.",
			Do:    "Mend the reason, then replay them.",
		}
		var consumer, reason string
		var dead, keys, behind int64
		err := row.Scan(&consumer, &dead, &keys, &behind, &c.Since, &reason, &c.Details)
		c.Station = service.StationInbox + consumer
		c.What = consumer + " has " + service.Count(dead, "dead letter")
		if keys > 0 {
			c.What += " of " + service.Count(keys, "key")
		}
		if dead > 1 {
			reason = ", most often " + reason
		} else {
			reason = ": " + reason
		}
		c.What += reason
		if behind > 0 {
			c.What += "; " + service.Waits(behind, "event") + " behind"
		}
		c.What += "."
		return c, err
	})
}

// An event whose missing version has come is resumed within seconds. Only parked events have a text key for certain.
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
		c := service.Cause{
			Code: "waits_for_gap", Command: "twinbox dlq list",
			Means: "Events of these keys have no effect until it comes.",
			Do:    "Find out whether it comes. Publish it again, or go on without it.",
		}
		var consumer string
		var keys, events int64
		err := row.Scan(&consumer, &keys, &events, &c.Since, &c.Details)
		c.Station = service.StationInbox + consumer
		c.What = fmt.Sprintf("%s misses an earlier version of %s; %s.",
			consumer, service.Count(keys, "key"), service.Waits(events, "event"))
		return c, err
	})
}
