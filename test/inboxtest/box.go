package inboxtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/test/outboxtest"
)

// Box is a consumer without a broker: an inbox with handlers that owns one partition. Its deliveries wait for each
// other; make several boxes for concurrent ones.
type Box struct {
	pool      *pgxpool.Pool
	config    inbox.Config
	in        *inbox.Inbox
	replayer  *inbox.Replayer
	handle    message.HandlerFunc
	partition int32
	hasOutbox bool

	mu       sync.Mutex
	offset   int64
	outcomes map[string]inbox.Outcome // of the present delivery, and of events that it resumed
	failures int                      // transient ones
	failed   error
}

// Two boxes with one partition would take each other for a process that died.
var partitions atomic.Int32

// Handlers are typed ones in an [inbox.Mux], or a plain one from [Plain].
type Handlers interface {
	Accepts(eventType string) bool
	HandleMessage(msg *message.Message) ([]*message.Message, error)
}

// Plain returns a plain Watermill handler of events of the types.
func Plain(handler message.NoPublishHandlerFunc, types ...string) Handlers {
	return plain{handler, types}
}

type plain struct {
	handler message.NoPublishHandlerFunc
	types   []string
}

func (p plain) Accepts(eventType string) bool { return slices.Contains(p.types, eventType) }

func (p plain) HandleMessage(msg *message.Message) ([]*message.Message, error) {
	return nil, p.handler(msg)
}

// Strict is for [NewBox] and [Idempotence]: the consumer keeps the order of its keys' versions.
func Strict(c *inbox.Config) { c.Order = inbox.Strict }

// Consumer is for [NewBox]: the consumer's name.
func Consumer(name string) func(*inbox.Config) { return func(c *inbox.Config) { c.Consumer = name } }

// Checked is for [NewBox] and [Idempotence]: each event is compared with its contract.
func Checked(validate func(event.Event) error) func(*inbox.Config) {
	return func(c *inbox.Config) { c.Validate = validate }
}

// NewBox opens the inbox of a consumer, named "test" by default. Retries follow within 2 ms. A transient error gets as
// many attempts as an unknown one.
func NewBox(t testing.TB, pool *pgxpool.Pool, handlers Handlers, configure ...func(*inbox.Config)) *Box {
	t.Helper()
	b := &Box{
		pool: pool, handle: handlers.HandleMessage, partition: partitions.Add(1), outcomes: map[string]inbox.Outcome{},
		config: On(pool).Config,
	}
	b.config.Group, b.config.Accepts, b.config.MaxAttempts = "test", handlers.Accepts, 5
	for _, set := range configure {
		set(&b.config)
	}
	b.config.Host = boxHost{box: b}
	var err error
	b.in, err = inbox.New(b.config)
	require.NoError(t, err, "open inbox")
	b.replayer = inbox.NewReplayer(b.in, b.attempt)
	const hasOutbox = `select to_regclass('public.outbox') is not null`
	require.NoError(t, pool.QueryRow(t.Context(), hasOutbox).Scan(&b.hasOutbox), "look for the outbox")
	return b
}

type boxHost struct {
	inbox.Standalone
	box *Box
}

func (h boxHost) Handled(e event.Event, outcome inbox.Outcome) { h.box.outcomes[e.ID] = outcome }

func (h boxHost) Wait(ctx context.Context, failure error, d time.Duration) error {
	if h.box.failures++; h.box.failures >= h.box.config.MaxAttempts {
		return failure
	}
	return h.Standalone.Wait(ctx, failure, d)
}

func (b *Box) attempt(msg *message.Message) ([]*message.Message, error) {
	produced, err := b.handle(msg)
	b.failed = err
	return produced, err
}

type Delivery struct {
	Outcome    inbox.Outcome
	Err        error              // of the last attempt, or why there was none
	DeadLetter *deadletter.Letter // nil: none
	Emitted    []event.Event      // added to the outbox of the same database, in order
}

// NewEventOf makes an event as its producer would, with a new id. Version 0: without versions.
func NewEventOf[T event.Ruled](t testing.TB, of event.Definition[T], version int64, payload T) event.Event {
	t.Helper()
	e, err := event.New(of, version, payload)
	require.NoError(t, err, "make event")
	e.ID = uuid.Must(uuid.NewV7()).String()
	return e
}

// Deliver hands the event over as the next record, and resumes the events of its key that waited for it.
func (b *Box) Deliver(t testing.TB, e event.Event) Delivery {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), WaitLimit)
	defer cancel()
	msg := record(ctx, e, event.Origin{
		Group: b.config.Group, Topic: cmp.Or(e.Topic, "test"), Partition: b.partition, Offset: b.offset,
	})
	b.offset++
	clear(b.outcomes)
	b.failures, b.failed = 0, nil
	before := len(b.emitted(t, e.ID))
	_, err := b.in.Middleware(b.attempt)(msg)
	failed := b.failed
	if err == nil {
		err = b.replayer.ResumeRound(ctx)
	}
	got := Delivery{Outcome: b.outcomes[e.ID], Err: cmp.Or(failed, err), Emitted: b.emitted(t, e.ID)[before:]}
	if ctx.Err() != nil {
		t.Fatalf("deliver %s: not handled in %s: %v", e.Type, WaitLimit, got.Err)
	}
	if err != nil {
		got.Outcome, got.Err = inbox.Failed, err
	}
	got.DeadLetter, err = b.letter(ctx, e.ID)
	require.NoError(t, err, "deliver %s", e.Type)
	if got.DeadLetter != nil && got.Err == nil && got.Outcome == inbox.Dead {
		got.Err = errors.New(got.DeadLetter.Code + ": " + got.DeadLetter.Error)
	}
	return got
}

func (b *Box) emitted(t testing.TB, id string) []event.Event {
	t.Helper()
	if !b.hasOutbox {
		return nil
	}
	return outboxtest.Added(t, b.pool, outboxtest.CausedBy(id))
}

func record(ctx context.Context, e event.Event, at event.Origin) *message.Message {
	at.Time, at.Key = e.Time, []byte(e.Key)
	msg := e.Message()
	msg.SetContext(event.WithOrigin(ctx, at))
	return msg
}

const newestDeadLetter = `
select ` + deadletter.Columns + ` from public.dead_letter
where consumer = $1 and event_id = $2 order by id desc limit 1`

func (b *Box) letter(ctx context.Context, id string) (*deadletter.Letter, error) {
	rows, _ := b.pool.Query(ctx, newestDeadLetter, b.config.Consumer, id)
	letter, err := pgx.CollectExactlyOneRow(rows, deadletter.Scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &letter, err
}

// RequireOutcome delivers the event, and fails the test with the reason when the outcome is a different one.
func (b *Box) RequireOutcome(t testing.TB, want inbox.Outcome, e event.Event) Delivery {
	t.Helper()
	got := b.Deliver(t, e)
	if got.Outcome != want {
		t.Fatalf("the event came to %q, and %q was to be\n  %s%s", got.Outcome, want, outboxtest.Line(e), got.why())
	}
	return got
}

func (d Delivery) why() string {
	var why strings.Builder
	if d.Err != nil {
		fmt.Fprintf(&why, "\n  the handler: %v", d.Err)
	}
	if l := d.DeadLetter; l != nil {
		fmt.Fprintf(&why, "\n  dead letter: %s %s after %d attempts: %s", l.State, l.Code, l.Attempts, l.Error)
	}
	for _, e := range d.Emitted {
		fmt.Fprintf(&why, "\n  emitted: %s", outboxtest.Line(e))
	}
	return why.String()
}
