package inbox_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	dto "github.com/prometheus/client_model/go"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/kafkatest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "15") // make test-long has more
	kafkatest.Main(m)
}

type bundle struct{ *inboxtest.Bundle }

func setup(t *testing.T) *bundle {
	t.Helper()
	return &bundle{inboxtest.New(t)}
}

func fresh(t *testing.T) *bundle {
	t.Helper()
	return &bundle{inboxtest.Fresh(t)}
}

func newBundle(pool *pgxpool.Pool) *bundle { return &bundle{inboxtest.On(pool)} }

// again empties the database.
func (b *bundle) again(t *testing.T) *bundle {
	t.Helper()
	b.Empty(t)
	return newBundle(b.Pool)
}

const (
	waitLimit = inboxtest.WaitLimit
	pollEvery = inboxtest.PollEvery
	testType  = inboxtest.Type
	day       = 24 * time.Hour
)

type (
	testData    = inboxtest.Data
	handlerFunc = inboxtest.HandlerFunc
)

var (
	testEvent = inboxtest.Event
	deliver   = inboxtest.Deliver
	effect    = inboxtest.Effect
	newEvent  = inboxtest.NewEvent
	named     = inboxtest.Named
	at        = inboxtest.At
	record    = inboxtest.Record
)

func muxOf(handler handlerFunc) *inbox.Mux {
	mux := inbox.NewMux()
	inbox.Handle(mux, testEvent, handler)
	return mux
}

func (b *bundle) noteOutcomes() *[]inbox.Outcome {
	var outcomes []inbox.Outcome
	b.Host.OnOutcome = func(_ event.Event, o inbox.Outcome) { outcomes = append(outcomes, o) }
	return &outcomes
}

func hasLabel(m *dto.Metric, value string) bool {
	return slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == value })
}

func orderEvent() event.Event {
	return event.Event{
		ID: "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", Source: "/shop", Type: "com.example.order-placed.v1", Key: "42",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Data: []byte(`{"total":99}`),
	}
}

func acceptsTestType(eventType string) bool { return eventType == testType }
