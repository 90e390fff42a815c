package event_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestAFirstEventIsItsOwnCorrelation(t *testing.T) {
	t.Parallel()
	first := event.Event{ID: "1"}
	require.Equal(t, event.Cause{CorrelationID: "1", CausationID: "1"}, first.Cause())
	second := event.Event{ID: "2", Extensions: first.Cause().Extend(nil)}
	require.Equal(t, map[string]string{"ce_correlationid": "1", "ce_causationid": "1"}, second.Extensions)
	require.Equal(t, event.Cause{CorrelationID: "1", CausationID: "2"}, second.Cause())
}

func TestACauseKeepsWhatFits(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		extensions map[string]string
		want       event.Cause
	}{
		"all": {
			map[string]string{"traceparent": trace, "tracestate": "a=b", "ce_correlationid": "c", "ce_causationid": "0"},
			event.Cause{CorrelationID: "c", CausationID: "1", TraceParent: trace, TraceState: "a=b"},
		},
		"of Watermill's middleware": {
			map[string]string{"correlation_id": "c"}, event.Cause{CorrelationID: "c", CausationID: "1"},
		},
		"a correlation id that is too long": {
			map[string]string{"ce_correlationid": strings.Repeat("x", 256)},
			event.Cause{CorrelationID: "1", CausationID: "1"},
		},
		"a correlation id with a line break": {
			map[string]string{"ce_correlationid": "a\nb"}, event.Cause{CorrelationID: "1", CausationID: "1"},
		},
		"no trace": {
			map[string]string{"traceparent": strings.Repeat("x", 55), "tracestate": "a=b"},
			event.Cause{CorrelationID: "1", CausationID: "1"},
		},
		"a long state": {
			map[string]string{"traceparent": trace, "tracestate": strings.Repeat("x", 513)},
			event.Cause{CorrelationID: "1", CausationID: "1", TraceParent: trace},
		},
	} {
		e := event.Event{ID: "1", Extensions: row.extensions}
		require.Equal(t, row.want, e.Cause(), name)
	}
}

func TestExtendKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	cause := event.Cause{CorrelationID: "c", CausationID: "d", TraceParent: trace, TraceState: "a=b"}
	own := map[string]string{"traceparent": "mine", "ce_correlationid": "mine"}
	require.Equal(t, map[string]string{
		"traceparent": "mine", "ce_correlationid": "mine", "ce_causationid": "d",
	}, cause.Extend(own))
	require.Len(t, own, 2, "the caller's map stays as it is")
	require.Nil(t, event.Cause{}.Extend(nil), "what follows from nothing needs no headers")
}

func TestACauseTravelsInTheContext(t *testing.T) {
	t.Parallel()
	require.Zero(t, event.CauseFrom(context.Background()))
	cause := event.Cause{CorrelationID: "c"}
	require.Equal(t, cause, event.CauseFrom(event.WithCause(context.Background(), cause)))
}
