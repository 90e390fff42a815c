package inbox_test

import (
	"context"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "15") // make test-long has more
	kafkatest.Main(m)
}

// bundle is an inbox on a database with a ledger of effects.
type bundle struct {
	*inboxtest.Bundle
	Host *host // in Config
}

// newBundle returns a bundle on a database that has the tables.
func newBundle(pool *pgxpool.Pool) *bundle {
	b := &bundle{inboxtest.On(pool), &host{}}
	b.Config.Host = b.Host
	return b
}

// setup returns an empty bundle. Its database may be an earlier test's, because emptying one is quicker than making
// one.
func setup(t *testing.T) *bundle {
	t.Helper()
	var db *database
	select {
	case db = <-databases:
		db.reopen(t)
	default:
		db = &database{TB: t}
		db.bundle = makeBundle(db)
	}
	t.Cleanup(func() {
		if t.Failed() {
			db.end()
			return
		}
		db.bundle.Pool.Close()
		databases <- db
	})
	return db.bundle
}

// fresh returns a bundle on a new database, for a test that reads statistics or changes the inbox's tables.
func fresh(t *testing.T) *bundle {
	t.Helper()
	return makeBundle(t)
}

func makeBundle(t testing.TB) *bundle {
	pool := pgtest.New(t, migrations.Inbox, migrations.Audit)
	_, err := pool.Exec(t.Context(), `create table ledger (n bigint generated always as identity, event_id text)`)
	require.NoError(t, err)
	return newBundle(pool)
}

// databases are those of tests that passed. The server's end removes them.
var databases = make(chan *database, 1000)

// database outlives its test, unless the test fails.
type database struct {
	testing.TB
	bundle *bundle
	end    func()
}

// Cleanup keeps what ends the database: its first test does not.
func (d *database) Cleanup(end func()) { d.end = end }

func (d *database) reopen(t *testing.T) {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), d.bundle.Pool.Config())
	require.NoError(t, err)
	d.TB, d.bundle = t, newBundle(pool)
	d.bundle.empty(t)
}

const emptyTables = `
delete from ledger;
delete from dead_letter;
delete from inbox;
delete from inbox_key;
delete from inbox_owner;
delete from inbox_attempt;
delete from inbox_point;
delete from inbox_pause;
delete from inbox_horizon;
insert into inbox_horizon default values;
delete from operator_action;
select setval(sequence, 1, false)
from unnest('{ledger_n_seq, dead_letter_id_seq, operator_action_id_seq}'::regclass[]) as sequence`

// empty makes the database as new ones are.
func (b *bundle) empty(t *testing.T) {
	t.Helper()
	b.Exec(t, emptyTables)
}

// again empties the database.
func (b *bundle) again(t *testing.T) *bundle {
	t.Helper()
	b.empty(t)
	return newBundle(b.Pool)
}

// host is an [inbox.Host]. Nil functions do what [inbox.Standalone] does.
type host struct {
	inboxtest.Host
	Resumed   func(context.Context) error
	OnFailure func(ctx context.Context, failure error) // of an attempt
	Copy      func(context.Context, pgx.Tx, deadletter.Letter) error
}

func (h *host) AwaitResume(ctx context.Context) error {
	if h.Resumed == nil {
		return nil
	}
	return h.Resumed(ctx)
}

func (h *host) Attempted(ctx context.Context, failure error) {
	if h.OnFailure != nil && failure != nil {
		h.OnFailure(ctx, failure)
	}
}

func (h *host) CopyDeadLetter(ctx context.Context, tx pgx.Tx, letter deadletter.Letter) error {
	if h.Copy == nil {
		return nil
	}
	return h.Copy(ctx, tx, letter)
}

const (
	waitLimit = inboxtest.WaitLimit
	pollEvery = 2 * time.Millisecond // between two looks
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

// metric returns the first one of the name with that label, or nil.
func (b *bundle) metric(t testing.TB, name, label string) *dto.Metric {
	t.Helper()
	families, err := b.Registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			hasLabel := slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == label })
			if family.GetName() == name && hasLabel {
				return m
			}
		}
	}
	return nil
}

func (b *bundle) counter(t testing.TB, name, label string) int {
	t.Helper()
	return int(b.metric(t, name, label).GetCounter().GetValue())
}

func orderEvent() event.Event {
	return event.Event{
		ID: "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", Source: "/shop", Type: "com.example.order-placed.v1", Key: "42",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Data: []byte(`{"total":99}`),
	}
}

func acceptsTestType(eventType string) bool { return eventType == testType }
