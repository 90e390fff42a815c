package admin

import (
	"example.com/twinbox/internal/admin/adminapi"
	"example.com/twinbox/internal/deadletter"
)

// filterOf is the filter that stands in a request, at the root ("") or below a member ("filter/"). Beyond what is set
// to nothing it is deadletter's to check.
func filterOf(at string, f adminapi.DeadLetterFilter) (deadletter.Filter, error) {
	err := firstOf(
		checkSet(at+"consumer", f.Consumer), checkSet(at+"type", f.Type), checkSet(at+"key", f.Key),
		checkSet(at+"event_id", f.EventId), checkSet(at+"code", f.Code), checkSet(at+"error", f.Error),
		checkSet(at+"state", f.State), checkSome(at+"ids", f.Ids),
	)
	if err == nil && f.Limit != nil && *f.Limit < 1 {
		err = invalid(at+"limit", "is below 1")
	}
	return deadletter.Filter{
		IDs: value(f.Ids), Consumer: value(f.Consumer), EventType: value(f.Type), Key: value(f.Key),
		EventID: value(f.EventId), Code: value(f.Code), ErrorContains: value(f.Error),
		State: deadletter.State(value(f.State)), From: value(f.Since), To: value(f.Until), Limit: value(f.Limit),
	}, err
}

// checkSet refuses a condition that is set to nothing: a caller whose variable is empty must not pick everything else.
func checkSet(member string, given *string) error {
	if given != nil && *given == "" {
		return invalid(member, "is empty")
	}
	return nil
}

// checkSome does the same for a caller who has found no ids.
func checkSome[T any](member string, given *[]T) error {
	if given != nil && len(*given) == 0 {
		return invalid(member, "is empty")
	}
	return nil
}
