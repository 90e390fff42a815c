package eventing

import (
	"time"

	"example.com/twinbox/internal/service"
)

// The stations of a [service.Cause].
const (
	StationRelay  = "relay"
	StationBroker = "broker" // the relay and all inboxes
	StationInbox  = "inbox/"
)

const codeDown, codeAtLimit, codeBehind = "dependency_down", "relay_at_limit", "consumer_behind"

const stops = true

// advice is in the order of harm. A service's own causes have the empty code.
var advice = []struct {
	code            string
	stops           bool
	command         string
	meaning, remedy string
}{
	{codeDown, stops, "", "", "Bring it back. The service continues automatically."},
	{"relay_refused", stops, "", "", `Read "A relay that refuses" in docs/operations.md before you confirm it.`},
	{
		"database_went_back", !stops, "twinbox outbox lost", "Consumers keep the effects of events that are lost here.",
		"Read the list of the lost events, and decide what to take back by hand.",
	},
	{
		"broker_went_back", !stops, "twinbox verify", "The relay publishes the events again. Consumers skip what they know.",
		"Verify when the relay has finished.",
	},
	{
		"no_leader", stops, "twinbox outbox status", "Requests work, and their events wait. Nothing is lost.",
		"Look at the log of each instance: it has the reason why it does not lead.",
	},
	{
		"partition_without_owner", stops, "twinbox inbox stats", "Its events wait on the topic. Nothing is lost.",
		"Look at the log of the consumer's instances, and whether one runs.",
	},
	{
		"record_refused", stops, "twinbox inbox stats", "Its events wait on the topic.",
		"Look at the details: the topic, its records, the right to read it, or the service's database.",
	},
	{
		"attempt_failing", stops, "twinbox inbox stats", "Later events of the partition wait behind it. Nothing is lost.",
		"Mend what the handler needs. The next attempt succeeds then.",
	},
	{
		"handler_slow", stops, "twinbox inbox stats", "Later events of the partition wait behind it. Nothing is lost.",
		"Look for a lock or a slow server that the handler waits for.",
	},
	{
		"dead_letters", !stops, "twinbox dlq list", "These events have had no effect, nor have those that wait behind them.",
		"Mend the reason, then replay them.",
	},
	{
		"waits_for_gap", !stops, "twinbox dlq list", "Events of these keys have no effect until it comes.",
		"Find out whether it comes. Publish it again, or go on without it.",
	},
	{
		"keys_parked", !stops, "twinbox outbox release", "These events are not published. Other keys continue.",
		"Mend what the broker complains of. The relay tries each key again within 15 seconds, or when it is released.",
	},
	{"", !stops, "", "", ""},
	{
		codeAtLimit, !stops, "twinbox outbox status", "Events come late. Nothing is lost.",
		"Wait if the number falls. If it grows, look at the broker and at the log of the leader.",
	},
	{
		codeBehind, !stops, "twinbox inbox stats", "Effects come late. Nothing is lost.",
		"Wait if the number falls. If it grows, add instances or make the handler quicker.",
	},
	{service.CodeUnknown, !stops, "", "", ""},
	{
		"consumer_paused", stops, "", "Its events wait until it is resumed. Nothing is lost.",
		"Resume it when the reason is gone.",
	},
	{
		"relay_paused", stops, "", "Requests work. Events wait until it is resumed. Nothing is lost.",
		"Resume it when the reason is gone.",
	},
}

func rankOf(code string) int {
	for i, known := range advice {
		if known.code == code {
			return i
		}
	}
	return rankOf("")
}

func newCause(code, station string, since time.Time, what string) service.Cause {
	known := advice[rankOf(code)]
	return service.Cause{
		Code: code, Station: station, Since: since, What: what,
		Means: known.meaning, Do: known.remedy, Command: known.command, Stops: known.stops,
	}
}
