package eventing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/circuit"
)

// The stations of a [service.Cause].
const (
	StationRelay  = "relay"
	StationBroker = "broker" // the relay and all inboxes
	StationInbox  = "inbox/"
)

const codeDown, codeAtLimit, codeBehind = "dependency_down", "relay_at_limit", "consumer_behind"

// harm has the codes of the causes, the worst first. A service's own causes have the empty code.
var harm = []string{
	codeDown, "relay_refused", "database_went_back", "broker_went_back", "no_leader", "partition_without_owner",
	"record_refused", "attempt_failing", "handler_slow", "dead_letters", "waits_for_gap", "keys_parked", "",
	codeAtLimit, codeBehind, service.CodeUnknown, "consumer_paused", "relay_paused",
}

func rankOf(c service.Cause) int {
	if i := slices.Index(harm, c.Code); i >= 0 {
		return i
	}
	return slices.Index(harm, "")
}

// A Reason finds the causes of one kind that hold.
type Reason func(ctx context.Context) ([]service.Cause, error)

// Explain adds the service's own reasons. Call it before Run.
func (n *Node) Explain(reasons ...Reason) { n.reasons = append(n.reasons, reasons...) }

// diagnose returns why events wait or may be lost, the worst first. Followers must answer the same, so it asks the
// database and the broker.
func (n *Node) diagnose(ctx context.Context) []service.Cause {
	reasons := slices.Concat([]Reason{
		n.serversDown, n.outboxWaits, n.keysParked, n.partitionsStuck, n.consumersBehind, n.consumersPaused,
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
			n.report(errs[i])
		})
	}
	all.Wait()
	causes := withoutConsequences(slices.Concat(found...))
	isOutage := slices.ContainsFunc(causes, func(c service.Cause) bool { return c.Code == codeDown })
	if err := errors.Join(errs...); err != nil && !isOutage {
		causes = append(causes, service.Unknown(err))
	}
	for i := range causes {
		causes[i].Details = failure.Brief(causes[i].Details)
	}
	slices.SortStableFunc(causes, func(a, b service.Cause) int { return rankOf(a) - rankOf(b) })
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

func (n *Node) serversDown(context.Context) ([]service.Cause, error) {
	causes := DownCause(n.database, codeDown, "", "Requests fail, and no event is handled. Nothing is lost.")
	if causes == nil {
		causes = DownCause(n.broker, codeDown, StationBroker,
			"Requests work, and their events wait in the outbox. Nothing is lost.")
	}
	return causes, nil
}

// DownCause returns a cause while a server is down.
func DownCause(server *circuit.Circuit, code, station, means string) []service.Cause {
	down, is := errors.AsType[*circuit.DownError](server.Err())
	if !is {
		return nil
	}
	return []service.Cause{{
		Code: code, Station: station, Since: down.Since, What: "The " + down.Name + " is down.", Means: means,
		Do: "Bring it back. The service continues automatically.", Details: down.Err.Error(), Stops: true,
	}}
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
