package inboxtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

type depot struct {
	outbox *outbox.Outbox
	fails  error
}

type count struct {
	Parcel string    `json:"parcel"`
	At     time.Time `json:"at"`
}

func (count) Check() error { return nil }

func (c count) About() (parcel string, at time.Time) { return c.Parcel, c.At }

var counted = event.Define[count](event.Declaration{
	Type: "shop.parcel-counted.v1", Topic: "shop.depot.v1", Source: "/depot",
})

func (d *depot) events() *inbox.Mux {
	mux := inbox.NewMux()
	inbox.Handle(mux, inboxtest.Event,
		func(ctx context.Context, tx pgx.Tx, e event.Event, _ inboxtest.Data) error {
			if _, err := tx.Exec(ctx, insertParcel, e.Key, 1); err != nil {
				return err
			}
			said, err := event.New(counted, 0, count{e.Key, e.Time})
			if err != nil {
				return err
			}
			if _, err := d.outbox.Add(ctx, tx, said); err != nil {
				return err
			}
			return d.fails
		})
	return mux
}

func newDepot(t *testing.T) (*depot, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.New(t, migrations.Audit, migrations.Outbox, migrations.Inbox, parcelTable)
	return &depot{outbox: outboxtest.New(t)}, pool
}

func TestADeliveryGoesThroughTheEngine(t *testing.T) {
	t.Parallel()
	d, pool := newDepot(t)
	box := inboxtest.NewBox(t, pool, d.events(), inboxtest.Strict)
	newEvent := func(version int64) event.Event {
		e := inboxtest.NewEvent()
		e.Version = version
		return e
	}
	first, third := newEvent(1), newEvent(3)
	first.Source, third.Source = "/shop", "/shop"
	got := box.RequireOutcome(t, inbox.Applied, first)
	require.NoError(t, got.Err)
	require.Nil(t, got.DeadLetter)
	require.Len(t, got.Emitted, 1)
	require.Equal(t, counted.Type, got.Emitted[0].Type)

	require.Empty(t, box.RequireOutcome(t, inbox.Duplicate, first).Emitted)
	require.Equal(t, "version_gap", box.RequireOutcome(t, inbox.Gap, third).DeadLetter.Code)
	second := newEvent(2)
	second.Source = "/shop"
	box.RequireOutcome(t, inbox.Applied, second)
	require.Len(t, outboxtest.Added(t, pool, outboxtest.Type(counted)), 3, "the parked event is resumed")
	unversioned := newEvent(0)
	box.RequireOutcome(t, inbox.Dead, unversioned) // without a source it is not an event
}

func TestWhatAnOutcomeFailsWith(t *testing.T) {
	t.Parallel()
	d, pool := newDepot(t)
	box := inboxtest.NewBox(t, pool, d.events())
	requireText := func(e event.Event, want string) {
		t.Helper()
		require.Equal(t, want, testkit.FailureText(t, func(t testing.TB) { box.RequireOutcome(t, inbox.Duplicate, e) }))
	}
	requireText(inboxtest.Named("id-1", "a"), `the event came to "applied", and "duplicate" was to be
  com.example.test.v1 a v0 {"value":"a"}
  emitted: shop.parcel-counted.v1 a v1 {"parcel":"a","at":"2026-01-02T03:04:05Z"}`)
	requireText(inboxtest.Named("id-1", "a"), "")

	d.fails = inbox.PermanentAs("unknown_parcel", errors.New("no such parcel"))
	requireText(inboxtest.Named("id-2", "b"), `the event came to "dead", and "duplicate" was to be
  com.example.test.v1 b v0 {"value":"a"}
  the handler: no such parcel
  dead letter: waiting unknown_parcel after 1 attempts: no such parcel`)

	d.fails = failure.AsTransient(errors.New("the depot is closed"))
	requireText(inboxtest.Named("id-3", "c"), `the event came to "failed", and "duplicate" was to be
  com.example.test.v1 c v0 {"value":"a"}
  the handler: the depot is closed`)

	checked := inboxtest.NewBox(t, pool, d.events(), inboxtest.Checked(func(event.Event) error {
		return errors.New("value is missing")
	}))
	got := checked.RequireOutcome(t, inbox.Dead, inboxtest.Named("id-4", "d"))
	require.ErrorContains(t, got.Err, "value is missing")
}

func ExampleBox() {
	pool, drop := pgtest.Open(migrations.Audit, migrations.Inbox, parcelTable)
	defer drop()
	mux := inbox.NewMux()
	inbox.Handle(mux, inboxtest.Event,
		func(ctx context.Context, tx pgx.Tx, e event.Event, _ inboxtest.Data) error {
			_, err := tx.Exec(ctx, insertParcel, e.Key, 1)
			return err
		})
	t := exampleTB{} // of the test
	box, e := inboxtest.NewBox(t, pool, mux), inboxtest.Named("id-1", "a")
	fmt.Println(box.Deliver(t, e).Outcome)
	box.RequireOutcome(t, inbox.Duplicate, e)
	e.Data = []byte(`{"value":"another"}`)
	fmt.Println(box.RequireOutcome(t, inbox.Conflict, e).DeadLetter.Code)
	// Output:
	// applied
	// id_conflict
}

func ExamplePlain() {
	pool, drop := pgtest.Open(migrations.Audit, migrations.Inbox, parcelTable)
	defer drop()
	count := func(msg *message.Message) error {
		tx, _ := inbox.TxFromContext(msg.Context())
		e, _ := inbox.EventFromContext(msg.Context())
		fmt.Printf("%s of %s: %s\n", e.ID, e.Key, msg.Payload)
		_, err := tx.Exec(msg.Context(), insertParcel, e.Key, 1)
		return err
	}
	t := exampleTB{} // of the test
	box, e := inboxtest.NewBox(t, pool, inboxtest.Plain(count, inboxtest.Type)), inboxtest.Named("id-1", "a")
	fmt.Println(box.Deliver(t, e).Outcome)
	fmt.Println(box.Deliver(t, e).Outcome)
	other := inboxtest.Named("id-2", "a")
	other.Type = "com.example.other.v1"
	fmt.Println(box.Deliver(t, other).Outcome)
	// Output:
	// id-1 of a: {"value":"a"}
	// applied
	// duplicate
	// ignored
}

// Processors of Watermill's cqrs are plain handlers. The Router does not run.
func ExamplePlain_cqrs() {
	pool, drop := pgtest.Open(migrations.Audit, migrations.Inbox, parcelTable)
	defer drop()
	router := message.NewDefaultRouter(watermill.NopLogger{})
	processor, err := cqrs.NewEventProcessorWithConfig(router, cqrs.EventProcessorConfig{
		GenerateSubscribeTopic: func(cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) {
			return "unused", nil
		},
		SubscriberConstructor: func(cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return gochannel.NewGoChannel(gochannel.Config{}, nil), nil
		},
		Marshaler: byType{cqrs.JSONMarshaler{GenerateName: func(any) string { return inboxtest.Type }}},
	})
	if err != nil {
		panic(err)
	}
	err = processor.AddHandlers(cqrs.NewEventHandler("parcels", func(ctx context.Context, data *inboxtest.Data) error {
		tx, _ := inbox.TxFromContext(ctx)
		fmt.Println("parcel", data.Value)
		_, err := tx.Exec(ctx, insertParcel, data.Value, 1)
		return err
	}))
	if err != nil {
		panic(err)
	}
	parcels := router.Handlers()["parcels"]
	t := exampleTB{} // of the test
	box := inboxtest.NewBox(t, pool, inboxtest.Plain(func(msg *message.Message) error {
		_, err := parcels(msg)
		return err
	}, inboxtest.Type))
	fmt.Println(box.Deliver(t, inboxtest.Named("id-1", "a")).Outcome)
	fmt.Println(box.Deliver(t, inboxtest.Named("id-1", "a")).Outcome)
	// Output:
	// parcel a
	// applied
	// duplicate
}

type byType struct{ cqrs.JSONMarshaler }

func (byType) NameFromMessage(msg *message.Message) string {
	return msg.Metadata[event.HeaderType]
}

// This handler writes outside its transaction, so the write survives a rollback.
func ExampleRequireIdempotent() {
	t := exampleTB{cleanups: new([]func())} // of the test
	defer t.end()
	fmt.Println(testkit.FailureText(t, func(t testing.TB) {
		inboxtest.RequireIdempotent(t, inboxtest.Idempotence{
			Handlers: func(pool *pgxpool.Pool) inboxtest.Handlers {
				mux := inbox.NewMux()
				inbox.Handle(mux, inboxtest.Event,
					func(ctx context.Context, _ pgx.Tx, e event.Event, _ inboxtest.Data) error {
						_, err := pool.Exec(ctx, insertParcel, e.Key, 1)
						return err
					})
				return mux
			},
			Migrations: []migrations.Set{parcelTable},
			Events:     []event.Event{inboxtest.Named("id-1", "a")},
			Tables:     []string{"parcel"}, Except: []string{"parcel.at"},
		})
	}))
	// Output:
	// the handlers are not idempotent: each event twice, failing behind each statement, 1 in a transaction
	// table parcel has 2 rows and not 1; the first that differs
	//   once: none
	//   now:  {"key": "a", "sent": 1}
	// A handler's effect belongs into its transaction; a column that may differ into Except.
}

type exampleTB struct {
	testing.TB
	cleanups *[]func()
}

func (exampleTB) Helper()                  {}
func (exampleTB) Failed() bool             { return false }
func (exampleTB) Context() context.Context { return context.Background() }
func (t exampleTB) Cleanup(f func())       { *t.cleanups = append(*t.cleanups, f) }

func (t exampleTB) end() {
	for _, f := range slices.Backward(*t.cleanups) {
		f()
	}
}

var parcelTable = migrations.Set{Name: "parcel", FS: fstest.MapFS{"0001_parcel.sql": {Data: []byte(
	"-- +goose Up\ncreate table parcel (key text, sent int, at timestamptz default clock_timestamp());\n")}}}
