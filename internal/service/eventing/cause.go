package eventing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/circuit"
)

// The codes of the causes, in the order in which they are looked for. A service's own come before the last two.
const (
	CauseDependencyDown = "dependency_down"
	CauseRelayRefused   = "relay_refused"
	CauseNoLeader       = "no_leader"
	CauseKeysParked     = "keys_parked"
	CauseConsumerPaused = "consumer_paused"
	CauseNoOwner        = "partition_without_owner"
	CauseRecordRefused  = "record_refused"
	CauseAttemptFailing = "attempt_failing"
	CauseGap            = "waits_for_gap"
	CauseHandlerSlow    = "handler_slow"
	CauseDatabaseBack   = "database_went_back"
	CauseBrokerBack     = "broker_went_back"
	CauseRelayAtLimit   = "relay_at_limit"
	CauseConsumerBehind = "consumer_behind"
	CauseDeadLetters    = "dead_letters"
	CauseRelayPaused    = "relay_paused"
	CauseUnknown        = service.CodeUnknown
)

// patience is after how long what waits is asked about: on a healthy service it has gone on by then.
const (
	outboxPatience  = time.Second
	outboxSilence   = 5 * time.Second
	readingPatience = 2 * time.Second
	handlerPatience = 2 * time.Second
	lagPatienceAge  = 5 * time.Second
)

// maxSaid is how much of an error a sentence quotes.
const maxSaid = 300

// figures are the numbers behind a sentence. [Node.Explain] adds the seconds since when it holds.
type figures = map[string]float64

// A Reason finds out whether one thing is why the service waits. The zero Cause: it is not.
type Reason func(ctx context.Context) (service.Cause, error)

// Explain adds the service's own reasons for waiting, which are asked behind the node's, in their order. Call it before
// Run.
func (n *Node) Explain(reasons ...Reason) { n.reasons = append(n.reasons, reasons...) }

// Cause is why the service waits, or that all is well.
func (n *Node) Cause(ctx context.Context) service.Cause { return n.Admin.Cause(ctx) }

// diagnosis is one look at the node for why it waits. What several reasons need is read once.
type diagnosis struct {
	node   *Node
	outbox relay.Status
	lags   []consumerLags

	outboxUnknown bool // the database did not answer
}

// diagnose finds the first reason that holds. All of it is read when it is asked for, from the database and the broker
// rather than from this process where they know, so that followers say the same.
func (n *Node) diagnose(ctx context.Context) service.Cause {
	d := &diagnosis{node: n}
	reasons := slices.Concat([]Reason{
		d.dependencyDown, d.relayRefused, d.noLeader, d.keysParked, d.consumerPaused, d.noOwner,
		d.stands(CauseRecordRefused, readingPatience, "The broker gives %[1]s no records of %[2]s since %[3]s: %[4]s.",
			func(s kafka.Standing) (time.Time, error) { return s.Refused, s.Refusal }),
		d.stands(CauseAttemptFailing, 0, "%[1]s fails at the next record of %[2]s since %[3]s and tries again: %[4]s.",
			func(s kafka.Standing) (time.Time, error) { return s.Failing, s.Failure }),
		d.waitsForGap,
		d.stands(CauseHandlerSlow, handlerPatience, "The handler of %[1]s has been at the same records of %[2]s since %[3]s.",
			func(s kafka.Standing) (time.Time, error) { return s.Handling, nil }),
		d.databaseWentBack, d.brokerWentBack, d.relayAtLimit, d.consumerBehind, d.deadLetters,
	}, n.reasons, []Reason{d.relayPaused})
	var unknown []string
	for _, reason := range reasons {
		cause, err := reason(ctx)
		if err != nil {
			n.dependencies.report(err)
			if text := err.Error(); !slices.Contains(unknown, text) {
				unknown = append(unknown, text)
			}
		}
		if cause.Code == "" {
			continue
		}
		if cause.Figures == nil {
			cause.Figures = figures{}
		}
		if !cause.Since.IsZero() {
			cause.Figures["seconds"] = time.Since(cause.Since).Seconds()
		}
		return cause
	}
	if unknown != nil {
		said := failure.Cut(strings.Join(unknown, "; "), maxSaid)
		return service.Cause{Code: CauseUnknown, Sentence: "It is not known whether anything waits: " + said + "."}
	}
	return service.Cause{Code: service.CodeAllWell, Sentence: "All is well."}
}

func (d *diagnosis) dependencyDown(context.Context) (service.Cause, error) {
	cause := DownCause(CauseDependencyDown, d.node.dependencies.database)
	if cause.Code == "" {
		cause = DownCause(CauseDependencyDown, d.node.dependencies.broker)
	}
	return cause, nil
}

// DownCause says since when a server is down, and why; the zero Cause: it is up.
func DownCause(code string, server *circuit.Circuit) service.Cause {
	down, is := errors.AsType[*circuit.DownError](server.Err())
	if !is {
		return service.Cause{}
	}
	return service.Cause{
		Code: code, Since: down.Since,
		Sentence: fmt.Sprintf("The %s has been down since %s: %s.", down.Name, clock(down.Since),
			failure.Cut(down.Err.Error(), maxSaid)),
	}
}

// relayRefused is asked first of the reasons that need the outbox's status, which the others find then. A relay that
// refuses may end its session between two looks.
func (d *diagnosis) relayRefused(ctx context.Context) (cause service.Cause, err error) {
	if d.outbox, err = relay.ReadStatus(ctx, d.node.Pool); err != nil {
		d.outboxUnknown = true
		return cause, err
	}
	r := d.outbox.Refused
	if r == nil {
		return cause, nil
	}
	cause = service.Cause{
		Code: CauseRelayRefused, Command: "twinbox outbox confirm " + r.Code,
		Figures:  figures{"events": float64(d.outbox.Waiting)},
		Sentence: fmt.Sprintf("Nothing is published until an operator confirms it; %s. %s", waiting(d.outbox), r.Text),
	}
	if r.Confirmed {
		cause.Command = "twinbox outbox status"
		cause.Sentence = fmt.Sprintf("The relay looks again since %s is confirmed; %s.", r.Code, waiting(d.outbox))
	}
	return cause, nil
}

func (d *diagnosis) noLeader(context.Context) (cause service.Cause, _ error) {
	if d.outboxUnknown || d.outbox.Leading {
		return cause, nil
	}
	s, why := d.outbox, "none has led yet"
	if s.Leader != "" {
		why = s.Leader + " led last"
	}
	cause.Code, cause.Command = CauseNoLeader, "twinbox outbox status"
	cause.Figures = figures{"events": float64(s.Waiting)}
	cause.Sentence = "No instance publishes the outbox: " + why + "; " + waiting(s) + "."
	return cause, nil
}

func (d *diagnosis) databaseWentBack(context.Context) (service.Cause, error) {
	s := d.outbox
	if !s.DatabaseWentBack() {
		return service.Cause{}, nil
	}
	return service.Cause{
		Code: CauseDatabaseBack, Since: *s.DatabaseBackAt, Command: "twinbox outbox lost",
		Figures: figures{"lost": float64(s.Lost), "partitions": float64(s.Healing)},
		Sentence: fmt.Sprintf("The database went back to an earlier state and lost %s; the relay found it at %s. Consumers "+
			"keep what they applied. %s", count(s.Lost, "published event", "published events"), clock(*s.DatabaseBackAt),
			healing(s)),
	}, nil
}

func (d *diagnosis) brokerWentBack(context.Context) (service.Cause, error) {
	s := d.outbox
	if !s.BrokerWentBack() {
		return service.Cause{}, nil
	}
	return service.Cause{
		Code: CauseBrokerBack, Since: *s.BrokerBackAt, Command: "twinbox verify",
		Figures: figures{"partitions": float64(s.Healing)},
		Sentence: fmt.Sprintf("The broker lost records that it had acknowledged; the relay found it at %s. %s",
			clock(*s.BrokerBackAt), healing(s)),
	}, nil
}

// healing is a sentence on how far the relay has repaired a loss.
func healing(s relay.Status) string {
	if s.Healing == 0 {
		return "The relay has repaired the log."
	}
	return fmt.Sprintf("The relay publishes the events of %s again.",
		count(s.Healing, "topic-partition", "topic-partitions"))
}

func (d *diagnosis) keysParked(ctx context.Context) (service.Cause, error) {
	keys, events := d.outbox.ParkedKeys, d.outbox.HeldEvents
	if keys == 0 {
		return service.Cause{}, nil
	}
	parked, err := relay.Parked(ctx, d.node.Pool, 1)
	if err != nil || len(parked) == 0 {
		return service.Cause{}, err
	}
	first := parked[0]
	command := "twinbox outbox status"
	if first.Permanent {
		command = "twinbox outbox release"
	}
	return service.Cause{
		Code: CauseKeysParked, Since: first.ParkedAt, Command: command,
		Figures: figures{"keys": float64(keys), "events": float64(events)},
		Sentence: fmt.Sprintf("%s %s; of the first, for %s since %s, the broker says: %s.",
			count(keys, "key is parked and holds", "keys are parked and hold"), count(events, "event", "events"), first.Topic,
			clock(first.ParkedAt), failure.Cut(first.Reason, maxSaid)),
	}, nil
}

// relayAtLimit holds where more waits than one call takes and has waited for a second, or anything for longer than any
// poll. A second look tells a backlog from an event that was just on its way.
func (d *diagnosis) relayAtLimit(ctx context.Context) (service.Cause, error) {
	if d.outbox.Paused != nil || !d.overdue(d.outbox) {
		return service.Cause{}, nil
	}
	again, err := relay.ReadStatus(ctx, d.node.Pool)
	if err != nil || !d.overdue(again) {
		return service.Cause{}, err
	}
	sentence := fmt.Sprintf("The relay publishes less than is added: %s, the oldest since %s.", waiting(again),
		clock(*again.OldestWaiting))
	if silent := d.node.relay.Healthy(ctx); silent != nil && !errors.Is(silent, context.Canceled) {
		sentence = fmt.Sprintf("The relay gets nothing published: %s; %s.", failure.Cut(silent.Error(), maxSaid),
			waiting(again))
	}
	return service.Cause{
		Code: CauseRelayAtLimit, Since: *again.OldestWaiting, Command: "twinbox outbox status", Sentence: sentence,
		Figures: figures{"events": float64(again.Waiting)},
	}, nil
}

func (d *diagnosis) overdue(s relay.Status) bool {
	batch := int64(d.node.setup.Config.Outbox.BatchSize)
	return s.Waiting > batch && s.WaitingFor > outboxPatience || s.Waiting > 0 && s.WaitingFor > outboxSilence
}

// relayPaused comes last: an operator knows of a pause, and it hides no other cause.
func (d *diagnosis) relayPaused(context.Context) (service.Cause, error) {
	p := d.outbox.Paused
	if p == nil {
		return service.Cause{}, nil
	}
	return service.Cause{
		Code: CauseRelayPaused, Since: p.Since, Command: "twinbox outbox resume",
		Figures: figures{"events": float64(d.outbox.Waiting)},
		Sentence: fmt.Sprintf("Publishing has been paused by %s since %s: %s; %s.", p.By, clock(p.Since), p.Reason,
			waiting(d.outbox)),
	}, nil
}

// consumerPaused names the consumer that has been paused for longest.
func (d *diagnosis) consumerPaused(ctx context.Context) (cause service.Cause, err error) {
	if len(d.node.consumers) == 0 {
		return cause, nil
	}
	paused, err := inbox.ReadPaused(ctx, d.node.Pool)
	names := slices.DeleteFunc(d.node.consumerNames(), func(name string) bool {
		_, is := paused[name]
		return !is
	})
	if len(names) == 0 {
		return cause, err
	}
	first := slices.MinFunc(names, func(a, b string) int { return paused[a].Since.Compare(paused[b].Since) })
	p := paused[first]
	return service.Cause{
		Code: CauseConsumerPaused, Since: p.Since, Command: "twinbox consumer resume " + first,
		Figures:  figures{"consumers": float64(len(names))},
		Sentence: fmt.Sprintf("%s has been paused by %s since %s: %s.", first, p.By, clock(p.Since), p.Reason),
	}, nil
}

// consumerLags are what waits for one consumer, and who owns the partitions where it does.
type consumerLags struct {
	*consumer
	lags   []kafka.Lag
	owners kafka.Owners
}

// sum counts some of the partitions and their records, and finds the one whose first record has waited for longest.
func (c consumerLags) sum(counts func(kafka.Lag) bool) (first kafka.Lag, partitions int, records int64) {
	for _, l := range c.lags {
		if !counts(l) {
			continue
		}
		if partitions == 0 || l.Age > first.Age {
			first = l
		}
		partitions, records = partitions+1, records+l.Records
	}
	return first, partitions, records
}

const stableGroup = "Stable"

// noOwner is asked first of what needs to know what waits on the log, which the others find then. While a group is
// sharing its partitions out anew, only those count in which something waits.
func (d *diagnosis) noOwner(ctx context.Context) (cause service.Cause, err error) {
	for _, c := range d.node.consumers {
		found := consumerLags{consumer: c}
		if found.lags, err = kafka.ReadLag(ctx, d.node.setup.lagClient(), c.group, c.Topic); err != nil {
			return cause, err
		}
		if found.owners, err = kafka.ReadOwners(ctx, d.node.setup.lagClient(), c.group, c.Topic); err != nil {
			return cause, err
		}
		d.lags = append(d.lags, found)
		first, partitions, records := found.sum(func(l kafka.Lag) bool {
			_, owned := found.owners.By[l.Partition]
			return !owned && (l.Records > 0 || found.owners.State == stableGroup)
		})
		if partitions == 0 || cause.Code != "" {
			continue
		}
		more := ""
		if partitions > 1 {
			more = " and " + count(partitions-1, "more partition", "more partitions")
		}
		cause = service.Cause{
			Code: CauseNoOwner, Command: "twinbox inbox stats",
			Figures: figures{"partitions": float64(partitions), "records": float64(records)},
			Sentence: fmt.Sprintf("No instance of %s reads %s%s; %s.", c.Name, at(first.Topic, first.Partition), more,
				count(records, "record waits", "records wait")),
		}
		if first.Records > 0 {
			cause.Since = time.Now().Add(-first.Age)
		}
	}
	return cause, nil
}

// consumerBehind is what is left where records wait: an instance says so whether or not it owns their partition.
func (d *diagnosis) consumerBehind(context.Context) (service.Cause, error) {
	for _, c := range d.lags {
		first, _, records := c.sum(func(l kafka.Lag) bool { return l.Records > 0 })
		if first.Age < lagPatienceAge {
			continue
		}
		since := time.Now().Add(-first.Age)
		return service.Cause{
			Code: CauseConsumerBehind, Since: since, Command: "twinbox inbox stats",
			Figures: figures{"records": float64(records)},
			Sentence: fmt.Sprintf("%s is behind: %s, the first in %s since %s, which %s reads.", c.Name,
				count(records, "record waits", "records wait"), at(first.Topic, first.Partition), clock(since),
				c.owners.By[first.Partition]),
		}, nil
	}
	return service.Cause{}, nil
}

// stands is that this instance gets on with no record of a topic-partition, for longer than is usual. The sentence has
// the consumer, the topic-partition, the time since when and, where there is one, the error.
func (d *diagnosis) stands(
	code string, patience time.Duration, sentence string, look func(kafka.Standing) (since time.Time, err error),
) Reason {
	return func(context.Context) (cause service.Cause, _ error) {
		for _, c := range d.node.consumers {
			for _, s := range c.member.Standings() {
				since, err := look(s)
				if since.IsZero() || time.Since(since) < patience || cause.Code != "" && !since.Before(cause.Since) {
					continue
				}
				said := ""
				if err != nil {
					said = failure.Examine(err).Code + ": " + failure.Cut(err.Error(), maxSaid)
				}
				cause = service.Cause{
					Code: code, Since: since,
					Sentence: fmt.Sprintf(sentence, c.Name, at(s.Topic, s.Partition), clock(since), said),
				}
			}
		}
		return cause, nil
	}
}

// If the missing version has come, the event is resumed within seconds and does not count. The key of a parked event is
// text, that of other dead letters need not be.
const selectGaps = `
select d.consumer, count(distinct d.key_start), count(*), min(d.first_failed_at) as since
from public.dead_letter d
where d.state = 'waiting' and d.class = 'parked' and d.code = 'version_gap' and not exists (
    select from public.inbox_key k
    where k.consumer = d.consumer and k.version >= d.version - 1
        and k.key = case when d.class = 'parked' then convert_from(d.key_start, 'UTF8') end)
group by d.consumer order by since limit 1`

func (d *diagnosis) waitsForGap(ctx context.Context) (cause service.Cause, err error) {
	var consumer string
	var keys, events int64
	var since time.Time
	err = d.node.Pool.QueryRow(ctx, selectGaps).Scan(&consumer, &keys, &events, &since)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return cause, nil
	case err != nil:
		return cause, fmt.Errorf("look for gaps: %w", err)
	}
	return service.Cause{
		Code: CauseGap, Since: since, Command: "twinbox dlq list",
		Figures: figures{"keys": float64(keys), "events": float64(events)},
		Sentence: fmt.Sprintf("%s of %s %s for an earlier version that has not come since %s; %s parked.",
			count(keys, "key", "keys"), consumer, verb(keys, "waits", "wait"), clock(since),
			count(events, "event is", "events are")),
	}, nil
}

// deadLetters counts the dead letters that wait for an operator. Parked events wait for others.
func (d *diagnosis) deadLetters(ctx context.Context) (service.Cause, error) {
	waiting, err := deadletter.NewStore(d.node.Pool).Groups(ctx, deadletter.Filter{State: deadletter.Waiting})
	if err != nil {
		return service.Cause{}, err
	}
	var groups []deadletter.Group
	var dead, keys, behind int64
	for _, g := range waiting {
		switch g.Code {
		case inbox.CodeGap:
		case inbox.CodeParked:
			behind += g.Count
		default:
			groups, dead, keys = append(groups, g), dead+g.Count, keys+g.Keys
		}
	}
	if len(groups) == 0 {
		return service.Cause{}, nil
	}
	largest, most, parked := groups[0], "", ""
	if largest.Count < dead {
		most = "most of them "
	}
	if behind > 0 {
		parked = "; " + count(behind, "later event waits", "later events wait") + " behind " + verb(dead, "it", "them")
	}
	return service.Cause{
		Code: CauseDeadLetters, Since: largest.Oldest, Command: "twinbox dlq list",
		Figures: figures{"letters": float64(dead), "keys": float64(keys), "parked": float64(behind)},
		Sentence: fmt.Sprintf("%s of %s %s for an operator: %s%s in %s%s.",
			count(dead, "dead letter", "dead letters"), count(keys, "key", "keys"), verb(dead, "waits", "wait"), most,
			largest.Code, largest.Consumer, parked),
	}, nil
}

// clock is a time as sentences say it.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func at(topic string, partition int32) string { return fmt.Sprintf("%s/%d", topic, partition) }

func waiting(s relay.Status) string {
	if s.Waiting == relay.MaxWaiting {
		return fmt.Sprintf("%d or more events wait", s.Waiting)
	}
	return count(s.Waiting, "event waits", "events wait")
}

// count is a number with what there are so many of.
func count[N int | int64](n N, one, many string) string {
	return fmt.Sprint(n, " ", verb(n, one, many))
}

// verb is what a number of things do.
func verb[N int | int64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
