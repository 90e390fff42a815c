package eventing

import (
	"context"
	"errors"
	"fmt"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/circuit"
)

// explain adds the reasons of every service. Followers must answer the same, so they ask the database and the broker.
func (n *Node) explain() {
	n.Admin.Explain(
		n.serversDown, n.outboxWaits, n.keysParked, n.partitionsStuck, n.consumersBehind, n.consumersPaused,
		n.deadLetters, n.gaps,
	)
}

func (n *Node) serversDown(context.Context) ([]service.Cause, error) {
	causes := DownCause(n.database, service.CodeDown, "", "Requests fail, and no event is handled. Nothing is lost.")
	if causes == nil {
		causes = DownCause(n.broker, service.CodeDown, service.StationBroker,
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
