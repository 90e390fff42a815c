package outboxtest_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type shipped struct {
	Parcel string `json:"parcel"`
}

func (shipped) Check() error { return nil }

func (s shipped) About() (parcel string, at time.Time) {
	return s.Parcel, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
}

var (
	parcelShipped = event.Define[shipped](event.Declaration{
		Type: "shop.parcel-shipped.v1", Topic: "shop.parcels.v1", Source: "/shop",
	})
	parcelLost = event.Define[shipped](event.Declaration{
		Type: "shop.parcel-lost.v1", Topic: "shop.parcels.v1", Source: "/shop",
	})
)

func ship(t *testing.T, of event.Definition[shipped], key string) event.Event {
	t.Helper()
	e, err := event.New(of, 0, shipped{Parcel: key})
	require.NoError(t, err)
	return e
}

func TestTheOneEventIsDecoded(t *testing.T) {
	t.Parallel()
	o, pool := outboxtest.New(t), outboxtest.Database(t)
	tx := outboxtest.Begin(t, pool)
	_, err := o.Add(t.Context(), tx, ship(t, parcelShipped, "a"), ship(t, parcelShipped, "b"), ship(t, parcelLost, "a"))
	require.NoError(t, err)

	require.Equal(t, shipped{"a"}, outboxtest.RequireAdded(t, tx, parcelShipped, outboxtest.Key("a")))
	require.Equal(t, shipped{"a"}, outboxtest.RequireAdded(t, tx, parcelLost))
	outboxtest.RequireNone(t, tx, outboxtest.Key("c"))
	outboxtest.RequireNone(t, pool) // no commit yet
	added := outboxtest.Added(t, tx, outboxtest.Key("a"))
	require.Len(t, added, 2)
	require.Equal(t, []any{"shop.parcel-lost.v1", int64(2), "/shop", "shop.parcels.v1"},
		[]any{added[1].Type, added[1].Version, added[1].Source, added[1].Topic})
}

func TestWhatARequirementOnTheOutboxFailsWith(t *testing.T) {
	t.Parallel()
	o, pool := outboxtest.New(t), outboxtest.Database(t)
	requireText := func(db outboxtest.DB, want string) {
		t.Helper()
		require.Equal(t, want, testkit.FailureText(t, func(t testing.TB) {
			outboxtest.RequireAdded(t, db, parcelShipped, outboxtest.Key("a"))
		}))
	}
	const none = "0 events were added with type shop.parcel-shipped.v1, key a, and one was to be; the outbox has "
	tx := outboxtest.Begin(t, pool)
	_, err := o.Add(t.Context(), tx, ship(t, parcelShipped, "a"))
	require.NoError(t, err)
	requireText(pool, none+"no event; those of an open transaction are visible in it alone")
	requireText(tx, "")
	require.NoError(t, tx.Rollback(t.Context()))

	outboxtest.Commit(t, o, pool, ship(t, parcelShipped, "b"), ship(t, parcelLost, "a"))
	requireText(pool, none+`2, the last are
  shop.parcel-shipped.v1 b v1 {"parcel":"b"}
  shop.parcel-lost.v1 a v1 {"parcel":"a"}`)
	require.Equal(t, `no event was to be added with type shop.parcel-lost.v1; the outbox has 1, the last are
  shop.parcel-lost.v1 a v1 {"parcel":"a"}`, testkit.FailureText(t, func(t testing.TB) {
		outboxtest.RequireNone(t, pool, outboxtest.Type(parcelLost))
	}))

	outboxtest.Commit(t, o, pool, ship(t, parcelShipped, "a"), ship(t, parcelShipped, "a"))
	require.Contains(t, testkit.FailureText(t, func(t testing.TB) {
		outboxtest.RequireAdded(t, pool, parcelShipped, outboxtest.Key("a"))
	}), "2 events were added with type shop.parcel-shipped.v1, key a, and one was to be; ")
}

func TestOnlyTheLastEventsOfALongOutboxAreShown(t *testing.T) {
	t.Parallel()
	o, pool := outboxtest.New(t), outboxtest.Database(t)
	outboxtest.CommitMany(t, o, pool, 30, 30)
	text := testkit.FailureText(t, func(t testing.TB) { outboxtest.RequireNone(t, pool) })
	require.Regexp(t, `^no event was to be added with anything; the outbox has 30, the last are\n`, text)
	require.Len(t, regexp.MustCompile(`(?m)^  test`).FindAllString(text, -1), 20)
}

func TestAPayloadOfAnotherFormIsShown(t *testing.T) {
	t.Parallel()
	o, pool := outboxtest.New(t), outboxtest.Database(t)
	e := ship(t, parcelShipped, "a")
	e.Data = []byte(`{"parcel":1}`)
	outboxtest.Commit(t, o, pool, e)
	require.Regexp(t, `^event [-0-9a-f]{36}: the payload does not decode into outboxtest_test.shipped: "/parcel" is of `+
		`another type\nshop.parcel-shipped.v1 a v1 \{"parcel":1\}$`, testkit.FailureText(t, func(t testing.TB) {
		outboxtest.RequireAdded(t, pool, parcelShipped)
	}))
}

func ExampleRequireAdded() {
	pool, drop := pgtest.Open(migrations.Outbox)
	defer drop()
	ctx, t := context.Background(), exampleTB{}
	o, _ := outbox.New(outbox.Config{})
	_ = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		e, _ := event.New(parcelShipped, 0, shipped{Parcel: "a"})
		_, err := o.Add(ctx, tx, e)
		for _, added := range outboxtest.Added(t, tx, outboxtest.Key("a")) {
			fmt.Println(outboxtest.Line(added))
		}
		return err
	})
	fmt.Println(outboxtest.RequireAdded(t, pool, parcelShipped).Parcel)
	// Output:
	// shop.parcel-shipped.v1 a v1 {"parcel":"a"}
	// a
}

type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                  {}
func (exampleTB) Context() context.Context { return context.Background() }
