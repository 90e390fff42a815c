package eventing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/outbox/operate"
	"example.com/twinbox/frame/circuit"
	"example.com/twinbox/frame/service"
)

// The codes of the causes, in the order in which they are looked for. A service's own come behind them.
const (
	CauseDependencyDown = "dependency_down"
	CauseNoLeader       = "no_leader"
	CauseRestoreWaits   = "restore_waits"
	CauseRelayRefuses   = "relay_refuses"
	CauseKeysParked     = "keys_parked"
	CauseConsumerPaused = "consumer_paused"
	CauseNoOwner        = "partition_without_owner"
	CauseRecordRefused  = "record_refused"
	CauseAttemptFailing = "attempt_failing"
	CauseGap            = "waits_for_gap"
	CauseHandlerSlow    = "handler_slow"
	CauseRelayAtLimit   = "relay_at_limit"
	CauseConsumerBehind = "consumer_behind"
	CauseDeadLetters    = "dead_letters"
	CauseUnknown        = "unknown"
)

// A Reason finds out whether one thing is why the service waits. The zero Cause: it is not.
type Reason func(ctx context.Context) (service.Cause, error)

// Explain adds the service's own reasons for waiting, which are asked behind the node's, in their order. Call it before
// Run.
func (n *Node) Explain(reasons ...Reason) { n.reasons = append(n.reasons, reasons...) }

// Cause is why the service waits, or that all is well.
func (n *Node) Cause(ctx context.Context) service.Cause { return n.setup.Admin.Cause(ctx) }

// diagnosis is one look at the node for why it waits. What several reasons need is read once.
type diagnosis struct {
	node   *Node
	outbox operate.Status
	lags   []consumerLags
}

// why finds the first reason that holds. All of it is read when it is asked for, from the database and the broker
// rather than from this process where they know, so that followers say the same.
func (n *Node) why(ctx context.Context) service.Cause { return (&diagnosis{node: n}).find(ctx) }

func (d *diagnosis) find(ctx context.Context) service.Cause {
	reasons := slices.Concat([]Reason{
		d.dependencyDown, d.noLeader, d.restoreWaits, d.relayRefuses, d.keysParked, d.consumerPaused, d.noOwner,
		d.recordRefused, d.attemptFailing, d.waitsForGap, d.handlerSlow, d.relayAtLimit, d.consumerBehind, d.deadLetters,
	}, d.node.reasons)
	var unknown []string
	for _, reason := range reasons {
		cause, err := reason(ctx)
		if err != nil {
			d.node.dependencies.report(err)
			if text := err.Error(); !slices.Contains(unknown, text) {
				unknown = append(unknown, text)
			}
		}
		if cause.Code != "" {
			return cause
		}
	}
	if unknown != nil {
		return service.Cause{
			Code:     CauseUnknown,
			Sentence: "It is not known whether anything waits: " + failure.Cut(strings.Join(unknown, "; "), maxSaid) + ".",
		}
	}
	return service.Cause{
		Code: service.CodeAllWell, Sentence: "All is well.",
		Figures: map[string]float64{"events_waiting": float64(d.outbox.Waiting), "records_waiting": float64(d.records())},
	}
}

// maxSaid is how much of an error a sentence quotes.
const maxSaid = 300

func (d *diagnosis) dependencyDown(context.Context) (service.Cause, error) {
	for _, c := range []*circuit.Circuit{d.node.dependencies.database, d.node.dependencies.broker} {
		if down, is := errors.AsType[*circuit.DownError](c.Err()); is {
			return DownCause(CauseDependencyDown, down), nil
		}
	}
	return service.Cause{}, nil
}

// DownCause says since when a server is down, and why.
func DownCause(code string, down *circuit.DownError) service.Cause {
	return service.Cause{
		Code: code, Since: down.Since, Figures: map[string]float64{"seconds": time.Since(down.Since).Seconds()},
		Sentence: fmt.Sprintf("The %s has been down since %s: %s.", down.Name, clock(down.Since),
			failure.Cut(down.Err.Error(), maxSaid)),
	}
}

// clock is a time as sentences say it.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// several is a number with its noun.
func several[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// verb is what a number of things do.
func verb[N int | int64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
