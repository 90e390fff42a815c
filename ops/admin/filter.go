package admin

import (
	"example.com/twinbox/engine/deadletter"
	deadletters "example.com/twinbox/engine/deadletter/operate"
	"example.com/twinbox/ops/admin/adminapi"
)

// filterOf is the filter that stands in a request. That each condition says something the document has seen to.
func filterOf(f adminapi.DeadLetterFilter) deadletters.Filter {
	return deadletters.Filter{
		IDs: value(f.Ids), Consumer: value(f.Consumer), EventType: value(f.Type), Key: value(f.Key),
		EventID: value(f.EventId), Code: value(f.Code), ErrorContains: value(f.Error),
		State: deadletter.State(value(f.State)), From: value(f.Since), To: value(f.Until), Limit: value(f.Limit),
	}
}
