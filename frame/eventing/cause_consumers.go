package eventing

import (
	"context"
	"fmt"
	"time"

	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/deadletter/operate"
	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/engine/kafka/admin"
	"example.com/twinbox/engine/kafka/progress"
	"example.com/twinbox/frame/service"
)

// consumerLags are what waits for one consumer, and who owns the partitions where it does.
type consumerLags struct {
	*consumer
	lags   []admin.Lag
	owners admin.Owners
}

func (c consumerLags) at(l admin.Lag) string { return fmt.Sprintf("%s/%d", l.Topic, l.Partition) }

func (d *diagnosis) records() (n int64) {
	for _, c := range d.lags {
		for _, l := range c.lags {
			n += l.Records
		}
	}
	return n
}

// noOwner is asked first of what needs to know what waits on the log, which the others find then. While a group is
// sharing its partitions out anew, only those count in which something waits.
func (d *diagnosis) noOwner(ctx context.Context) (cause service.Cause, err error) {
	for _, c := range d.node.consumers {
		found := consumerLags{consumer: c}
		if found.lags, err = admin.ReadLag(ctx, d.node.lagClient(), c.group, c.Topic); err != nil {
			return cause, err
		}
		if found.owners, err = admin.ReadOwners(ctx, d.node.lagClient(), c.group, c.Topic); err != nil {
			return cause, err
		}
		d.lags = append(d.lags, found)
		if cause.Code == "" {
			cause = found.withoutOwner()
		}
	}
	return cause, nil
}

func (c consumerLags) withoutOwner() service.Cause {
	var first *admin.Lag
	partitions, records := 0, int64(0)
	for i, l := range c.lags {
		if _, owned := c.owners.By[l.Partition]; owned || l.Records == 0 && c.owners.State != stableGroup {
			continue
		}
		partitions, records = partitions+1, records+l.Records
		if first == nil || l.Age > first.Age {
			first = &c.lags[i]
		}
	}
	if first == nil {
		return service.Cause{}
	}
	cause := service.Cause{
		Code: CauseNoOwner, Command: "twinbox inbox stats",
		Figures: map[string]float64{
			"partitions": float64(partitions), "records": float64(records), "seconds": first.Age.Seconds(),
		},
		Sentence: fmt.Sprintf("No instance of %s reads %s%s; %s.", c.Name, c.at(*first), andMore(partitions-1),
			waitingRecords(records)),
	}
	if first.Records > 0 {
		cause.Since = time.Now().Add(-first.Age)
	}
	return cause
}

const stableGroup = "Stable"

func andMore(partitions int) string {
	if partitions == 0 {
		return ""
	}
	return " and " + several(partitions, "more partition")
}

func waitingRecords(n int64) string { return several(n, "record") + verb(n, " waits", " wait") }

// longest is the partition of this instance for which something has held for longest, and its consumer.
func (d *diagnosis) longest(since func(progress.Standing) time.Time) (*consumer, progress.Standing) {
	var of *consumer
	var found progress.Standing
	for _, c := range d.node.consumers {
		for _, s := range c.reader.Standings() {
			if at := since(s); !at.IsZero() && (of == nil || at.Before(since(found))) {
				of, found = c, s
			}
		}
	}
	return of, found
}

func (d *diagnosis) recordRefused(context.Context) (service.Cause, error) {
	c, s := d.longest(func(s progress.Standing) time.Time { return s.Refused })
	if c == nil || time.Since(s.Refused) < readingPatience {
		return service.Cause{}, nil
	}
	return service.Cause{
		Code: CauseRecordRefused, Since: s.Refused, Figures: map[string]float64{"seconds": time.Since(s.Refused).Seconds()},
		Sentence: fmt.Sprintf("The broker gives %s no records of %s/%d since %s: %s.", c.Name, s.Topic, s.Partition,
			clock(s.Refused), said(s.Refusal)),
	}, nil
}

func (d *diagnosis) attemptFailing(context.Context) (service.Cause, error) {
	c, s := d.longest(func(s progress.Standing) time.Time { return s.Failing })
	if c == nil {
		return service.Cause{}, nil
	}
	return service.Cause{
		Code: CauseAttemptFailing, Since: s.Failing, Figures: map[string]float64{"seconds": time.Since(s.Failing).Seconds()},
		Sentence: fmt.Sprintf("%s fails at the next record of %s/%d since %s and tries again: %s.", c.Name, s.Topic,
			s.Partition, clock(s.Failing), said(s.Failure)),
	}, nil
}

// said is an error with its code.
func said(err error) string {
	return failure.Examine(err).Code + ": " + failure.Cut(err.Error(), maxSaid)
}

func (d *diagnosis) waitsForGap(ctx context.Context) (service.Cause, error) {
	groups, err := d.letters(ctx)
	var letters, keys int64
	var first *operate.Group
	for i, g := range groups {
		if g.Code != inbox.CodeGap && g.Code != inbox.CodeJump {
			continue
		}
		letters, keys = letters+g.Count, keys+g.Keys
		if first == nil || g.Oldest.Before(first.Oldest) {
			first = &groups[i]
		}
	}
	if err != nil || first == nil {
		return service.Cause{}, err
	}
	return service.Cause{
		Code: CauseGap, Since: first.Oldest, Command: "twinbox dlq list",
		Figures: map[string]float64{"keys": float64(keys), "events": float64(letters)},
		Sentence: fmt.Sprintf("%s of %s %s for an earlier version that has not come since %s; %s parked.",
			several(keys, "key"), first.Consumer, verb(keys, "waits", "wait"), clock(first.Oldest),
			several(letters, "event")+verb(letters, " is", " are")),
	}, nil
}

func (d *diagnosis) handlerSlow(context.Context) (service.Cause, error) {
	c, s := d.longest(func(s progress.Standing) time.Time { return s.Handling })
	if c == nil || time.Since(s.Handling) < handlerPatience {
		return service.Cause{}, nil
	}
	return service.Cause{
		Code: CauseHandlerSlow, Since: s.Handling, Figures: map[string]float64{"seconds": time.Since(s.Handling).Seconds()},
		Sentence: fmt.Sprintf("The handler of %s has been at the same records of %s/%d since %s.", c.Name, s.Topic,
			s.Partition, clock(s.Handling)),
	}, nil
}

// consumerBehind is what is left where records wait: an instance says so whether or not it owns their partition.
func (d *diagnosis) consumerBehind(context.Context) (service.Cause, error) {
	for _, c := range d.lags {
		var records int64
		first := admin.Lag{}
		for _, l := range c.lags {
			records += l.Records
			if l.Records > 0 && l.Age > first.Age {
				first = l
			}
		}
		if first.Age < lagPatienceAge {
			continue
		}
		since := time.Now().Add(-first.Age)
		return service.Cause{
			Code: CauseConsumerBehind, Since: since, Command: "twinbox inbox stats",
			Figures: map[string]float64{"records": float64(records), "seconds": first.Age.Seconds()},
			Sentence: fmt.Sprintf("%s is behind: %s, the first in %s since %s, which %s reads.", c.Name,
				waitingRecords(records), c.at(first), clock(since), c.owners.By[first.Partition]),
		}, nil
	}
	return service.Cause{}, nil
}

func (d *diagnosis) deadLetters(ctx context.Context) (service.Cause, error) {
	groups, err := d.letters(ctx)
	var letters, keys, behind int64
	var largest *operate.Group
	for i, g := range groups {
		if g.Code == inbox.CodeParked {
			behind += g.Count
			continue
		}
		letters, keys = letters+g.Count, keys+g.Keys
		if largest == nil {
			largest = &groups[i]
		}
	}
	if err != nil || largest == nil {
		return service.Cause{}, err
	}
	most, parked := "", ""
	if largest.Count < letters {
		most = "most of them "
	}
	if behind > 0 {
		parked = fmt.Sprintf("; %s %s behind %s", several(behind, "later event"), verb(behind, "waits", "wait"),
			verb(letters, "it", "them"))
	}
	return service.Cause{
		Code: CauseDeadLetters, Since: largest.Oldest, Command: "twinbox dlq list",
		Figures: map[string]float64{"letters": float64(letters), "keys": float64(keys), "parked": float64(behind)},
		Sentence: fmt.Sprintf("%s of %s %s for an operator: %s%s in %s%s.",
			several(letters, "dead letter"), several(keys, "key"), verb(letters, "waits", "wait"), most, largest.Code,
			largest.Consumer, parked),
	}, nil
}

func (d *diagnosis) letters(ctx context.Context) ([]operate.Group, error) {
	return operate.NewStore(d.node.Pool).Groups(ctx, operate.Filter{State: deadletter.Waiting})
}
