package servicetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

// Two players throw a ball until it has no throws left.
type throw struct {
	Ball string `json:"ball"`
	Left int    `json:"left"`
}

func (throw) Check() error                 { return nil }
func (t throw) About() (string, time.Time) { return t.Ball, time.Time{} }

const schemaID = "https://example.com/thrown.v1.json"

func thrownBy(player string) event.Definition[throw] {
	return event.Define[throw](event.Declaration{
		Type: "game.thrown-by-" + player + ".v1", Topic: "game." + player + ".v1", Source: "/" + player, DataSchema: schemaID,
	})
}

type settings struct {
	AdminAddr string `env:"ADMIN_ADDR" envDefault:"127.0.0.1:0" format:"listen" doc:"listener of operators"`
	Player    string `env:"PLAYER" doc:"who it is"`

	eventing.Config
}

func (c settings) Listeners() service.Listeners { return service.Listeners{Admin: c.AdminAddr} }
func (c settings) Topics() []kafka.Topic        { return c.Config.Topics(thrownBy(c.Player).Topic) }
func (c settings) Rules() []config.Rule         { return c.Config.Rules() }

const (
	stuck = "stuck"
	lost  = "lost"
)

func player(name, other string) servicetest.Part {
	mine, theirs := thrownBy(name), thrownBy(other)
	s := eventing.Service[settings]{
		Name: name, Source: mine.Source,
		Migrations: []migrations.Set{migrations.Audit, migrations.Outbox, migrations.Inbox, migrations.Lease},
		Contract: func() (*event.Checker, error) {
			return event.LoadSchemas(fstest.MapFS{"events/thrown.v1.json": {Data: []byte(`{
				"$schema": "http://json-schema.org/draft-07/schema#", "$id": "` + schemaID + `", "type": "object"}`)}},
				mine.Declaration, theirs.Declaration)
		},
		SetUp: func(node *eventing.Node, _ settings) error {
			mux := inbox.NewMux()
			inbox.Handle(mux, theirs, func(ctx context.Context, tx pgx.Tx, _ event.Event, got throw) error {
				if got.Ball == stuck {
					return failure.AsTransient(errors.New("out of reach"))
				}
				if got.Ball == lost {
					return inbox.Permanent(errors.New("nowhere"))
				}
				if got.Left == 0 {
					return nil
				}
				back, err := event.New(mine, 0, throw{got.Ball, got.Left - 1})
				if err != nil {
					return err
				}
				_, err = node.Outbox.Add(ctx, tx, back)
				return err
			})
			return node.Consume(eventing.Consumer{
				Name: name + ".catches", Topic: theirs.Topic, Handlers: mux,
			})
		},
	}
	return servicetest.Part{Described: s.Describe(), Environ: []string{
		"PLAYER=" + name, "INBOX_HANDLER_TIMEOUT=1s", // a stop waits that long for the ball that is stuck
	}}
}

type game struct {
	*servicetest.System
	outbox *outbox.Outbox
}

func play(t *testing.T) game {
	t.Helper()
	return game{servicetest.Start(t, player("ann", "bob"), player("bob", "ann")), outboxtest.New(t)}
}

func (g game) begin(t *testing.T, name string, first throw) {
	t.Helper()
	e, err := event.New(thrownBy(name), 0, first)
	require.NoError(t, err)
	outboxtest.Commit(t, g.outbox, g.Pool(name), e)
}

// ExampleStart runs services in process.
func ExampleStart() {
	var t *testing.T // of the test
	_ = func() {
		sys := servicetest.Start(t, player("ann", "bob"), player("bob", "ann"))
		// ... a request to sys.API("ann")
		sys.Settle()
		outboxtest.RequireAdded(t, sys.Pool("bob"), thrownBy("bob"))
		pgtest.Advance(t, sys.Pool("ann"), time.Hour)
		sys.Settle()
	}
}

func TestSettleWaitsForAllThatFollows(t *testing.T) {
	t.Parallel()
	g := play(t)
	g.Settle() // no event yet
	g.begin(t, "ann", throw{"red", 9})
	g.begin(t, "bob", throw{"blue", 4})
	g.Settle()
	require.Len(t, outboxtest.Added(t, g.Pool("ann"), outboxtest.Key("red")), 5)
	require.Len(t, outboxtest.Added(t, g.Pool("bob"), outboxtest.Key("red")), 5)
	require.Len(t, outboxtest.Added(t, g.Pool("bob"), outboxtest.Key("blue")), 3)
}

func TestWhatSettleFailsWith(t *testing.T) {
	t.Parallel()
	g := play(t)
	g.begin(t, "ann", throw{stuck, 1})
	_, err := g.Pool("ann").Exec(t.Context(), lease.Intent, "ann.letters", "id-1") // no runner carries it out
	require.NoError(t, err)
	var busy []string
	testkit.Until(t, func() (settled bool) {
		var err error
		busy, err = g.Busy()
		return err == nil && len(busy) == 2 && busy[0] != "ann: 1 events wait in the outbox"
	}, busy)
	const inFront = `bob: bob\.catches has 1 records of game\.ann\.v1/\d before it`
	const owed = `ann: 1 effects of ann\.letters are pending`
	text := testkit.FailureText(t, func(t testing.TB) { g.On(t, time.Second).Settle() })
	require.Regexp(t, `^not settled after 1s; under way:\n  `+inFront+`\n  `+owed+`$`, text)
}

func TestSettleFailsWithADeadLetterUnlessItIsAllowed(t *testing.T) {
	t.Parallel()
	g := play(t)
	g.begin(t, "ann", throw{lost, 1})
	require.Equal(t, "bob has dead letters (see AllowsDeadLetters):\n  bob.catches: game.thrown-by-ann.v1: nowhere",
		testkit.FailureText(t, func(t testing.TB) { g.On(t, testkit.WaitLimit).Settle() }))
	g.AllowsDeadLetters = true
	g.Settle()
}

func TestWhatIsDueLaterIsNotUnderWay(t *testing.T) {
	t.Parallel()
	g := play(t)
	e, err := event.New(thrownBy("ann"), 0, throw{"red", 0})
	require.NoError(t, err)
	require.NoError(t, pgx.BeginFunc(t.Context(), g.Pool("ann"), func(tx pgx.Tx) error {
		return g.outbox.Schedule(t.Context(), tx, "red", outbox.After(time.Hour), e)
	}))
	g.Settle()
	outboxtest.RequireNone(t, g.Pool("ann"))
	pgtest.Advance(t, g.Pool("ann"), time.Hour)
	g.Settle()
	outboxtest.RequireAdded(t, g.Pool("ann"), thrownBy("ann"))
	var handled int
	require.NoError(t, g.Pool("bob").QueryRow(t.Context(), `select count(*) from inbox`).Scan(&handled))
	require.Equal(t, 1, handled, "bob's consumer has it")
}

func TestAServiceThatWasNotStarted(t *testing.T) {
	t.Parallel()
	none := &servicetest.System{}
	require.Equal(t, "no service cid was started", testkit.FailureText(t, func(t testing.TB) { none.On(t, 0).API("cid") }))
}
