package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/service/circuit"
)

// A Cause is one reason why events wait or may be lost. No text holds a secret or personal data.
type Cause struct {
	Code    string    `json:"code"`           // stable
	What    string    `json:"what"`           // one sentence with the figures, for people
	Since   time.Time `json:"since,omitzero"` // zero: unknown
	Means   string    `json:"means"`          // for requests and events
	Do      string    `json:"do"`
	Command string    `json:"command,omitempty"`
	Details string    `json:"details,omitempty"`
	Station string    `json:"station,omitempty"` // such as inbox/customer.profile; empty: everywhere
	Stops   bool      `json:"stops"`             // no event passes
}

// The stations of a [Cause].
const (
	StationRelay  = "relay"
	StationBroker = "broker" // the relay and all inboxes
	StationInbox  = "inbox/"
)

// Codes that decide about other causes.
const (
	CodeDown    = "dependency_down"
	CodeAtLimit = "relay_at_limit"
	CodeBehind  = "consumer_behind"
	CodeUnknown = "unknown"
)

// harm has the codes, the worst first. A service's own causes have the empty code.
var harm = []string{
	CodeDown, "relay_refused", "database_went_back", "broker_went_back", "no_leader", "partition_without_owner",
	"record_refused", "attempt_failing", "handler_slow", "dead_letters", "waits_for_gap", "keys_parked", "",
	CodeAtLimit, CodeBehind, CodeUnknown, "consumer_paused", "relay_paused",
}

func rankOf(c Cause) int {
	if i := slices.Index(harm, c.Code); i >= 0 {
		return i
	}
	return slices.Index(harm, "")
}

// A Reason finds the causes of one kind that hold. With an error it returns those that it knows.
type Reason func(ctx context.Context) ([]Cause, error)

const (
	reasonAge     = 500 * time.Millisecond
	reasonTimeout = 2 * time.Second
)

// Explain adds reasons to the readiness report, before Serve.
func (a *Admin) Explain(reasons ...Reason) {
	for _, find := range reasons {
		a.reasons = append(a.reasons, &Shared[[]Cause]{Ask: find, Age: reasonAge, Timeout: reasonTimeout})
	}
}

// Causes returns the causes that hold, the worst first. A reason's answer is used for half a second.
func (a *Admin) Causes() []Cause {
	found, errs := make([][]Cause, len(a.reasons)), make([]error, len(a.reasons))
	var all sync.WaitGroup
	for i, reason := range a.reasons {
		all.Go(func() { found[i], errs[i] = reason.Get() })
	}
	all.Wait()
	causes := append([]Cause{}, withoutConsequences(slices.Concat(found...))...)
	isOutage := slices.ContainsFunc(causes, func(c Cause) bool { return c.Code == CodeDown })
	if err := errors.Join(errs...); err != nil && !isOutage {
		causes = append(causes, Cause{
			Code: CodeUnknown, What: "Not everything is known.", Means: "A cause may hold that is not listed here.",
			Do: "Ask again. If it stays, follow the details.", Details: err.Error(), Station: CodeUnknown,
		})
	}
	for i := range causes {
		causes[i].Details = failure.Brief(causes[i].Details)
	}
	slices.SortStableFunc(causes, func(a, b Cause) int { return rankOf(a) - rankOf(b) })
	return causes
}

func withoutConsequences(causes []Cause) []Cause {
	return slices.DeleteFunc(slices.Clone(causes), func(c Cause) bool {
		isDelay := c.Code == CodeAtLimit || c.Code == CodeBehind
		return isDelay && slices.ContainsFunc(causes, func(by Cause) bool { return by.Stops && by.Concerns(c.Station) })
	})
}

// Concerns reports whether the cause affects a station, alone or with others.
func (c Cause) Concerns(station string) bool {
	kind, _, _ := strings.Cut(station, "/")
	usesBroker := kind == StationRelay || kind == "inbox" || kind == "topic"
	return c.Station == "" || c.Station == station || c.Station == StationBroker && usesBroker
}

// DownCause returns a cause while a server is down.
func DownCause(server *circuit.Circuit, code, station, means string) []Cause {
	down, is := errors.AsType[*circuit.DownError](server.Err())
	if !is {
		return nil
	}
	return []Cause{{
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
