package cloudevent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
)

const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestAFirstEventIsItsOwnCorrelation(t *testing.T) {
	t.Parallel()
	first := cloudevent.Event{ID: "1"}
	require.Equal(t, cloudevent.Cause{CorrelationID: "1", CausationID: "1"}, first.Cause())
	second := cloudevent.Event{ID: "2", Extensions: first.Cause().Extend(nil)}
	require.Equal(t, map[string]string{"ce_correlationid": "1", "ce_causationid": "1"}, second.Extensions)
	require.Equal(t, cloudevent.Cause{CorrelationID: "1", CausationID: "2"}, second.Cause())
}

func TestACauseKeepsWhatFits(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		extensions map[string]string
		want       cloudevent.Cause
	}{
		"all": {
			map[string]string{"traceparent": trace, "tracestate": "a=b", "ce_correlationid": "c", "ce_causationid": "0"},
			cloudevent.Cause{CorrelationID: "c", CausationID: "1", TraceParent: trace, TraceState: "a=b"},
		},
		"of Watermill's middleware": {
			map[string]string{"correlation_id": "c"}, cloudevent.Cause{CorrelationID: "c", CausationID: "1"},
		},
		"a correlation id that is too long": {
			map[string]string{"ce_correlationid": strings.Repeat("x", 256)},
			cloudevent.Cause{CorrelationID: "1", CausationID: "1"},
		},
		"a correlation id with a line break": {
			map[string]string{"ce_correlationid": "a\nb"}, cloudevent.Cause{CorrelationID: "1", CausationID: "1"},
		},
		"no trace": {
			map[string]string{"traceparent": strings.Repeat("x", 55), "tracestate": "a=b"},
			cloudevent.Cause{CorrelationID: "1", CausationID: "1"},
		},
		"a long state": {
			map[string]string{"traceparent": trace, "tracestate": strings.Repeat("x", 513)},
			cloudevent.Cause{CorrelationID: "1", CausationID: "1", TraceParent: trace},
		},
	} {
		e := cloudevent.Event{ID: "1", Extensions: row.extensions}
		require.Equal(t, row.want, e.Cause(), name)
	}
}

func TestExtendKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	cause := cloudevent.Cause{CorrelationID: "c", CausationID: "d", TraceParent: trace, TraceState: "a=b"}
	own := map[string]string{"traceparent": "mine", "ce_correlationid": "mine"}
	require.Equal(t, map[string]string{
		"traceparent": "mine", "ce_correlationid": "mine", "ce_causationid": "d",
	}, cause.Extend(own))
	require.Len(t, own, 2, "the caller's map stays as it is")
	require.Nil(t, cloudevent.Cause{}.Extend(nil), "what follows from nothing needs no headers")
}

func TestACauseTravelsInTheContext(t *testing.T) {
	t.Parallel()
	require.Zero(t, cloudevent.CauseFrom(context.Background()))
	cause := cloudevent.Cause{CorrelationID: "c"}
	require.Equal(t, cause, cloudevent.CauseFrom(cloudevent.WithCause(context.Background(), cause)))
}
