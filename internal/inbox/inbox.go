package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/poison"
)

// Config configures a consumer's inbox. Consumer and Pool are required.
type Config struct {
	// Consumer is the consumer's name, such as "notification.mails": the first half of the inbox key. Two consumers of one
	// database each see every event once. A renamed consumer has forgotten all events.
	Consumer string
	// Group is the consumer group of records whose subscriber does not name it, such as watermill-kafka's. Their dead
	// letters are stored and copied under it. Default: none; then they have no copy.
	Group string
	// Pool is the database of the handlers' writes. Its sessions must be READ COMMITTED, PostgreSQL's default.
	Pool *pgxpool.Pool
	// Handlers say which events the consumer handles: a [*Mux]. Default: every event is accepted.
	Handlers Handlers
	// Validate checks an accepted event against its contract before a transaction is opened. Its errors are
	// permanent. Default: no check.
	Validate func(cloudevent.Event) error
	// Versioned keeps the order of a key's versions, which count from 1: an event whose version the key has reached is
	// skipped (outcome stale), OnGap decides about one whose predecessor is missing, and one without a version behind one
	// with a version is given up as missing_version; before it, a key's events are applied as they come. Events of types
	// without a handler count too. It costs one more statement per event; handlers whose events build on each other need
	// it. A consumer that becomes versioned later, or starts in the middle of its topic, finds a gap in every key: see
	// AcceptGap of package replay's Options.
	Versioned bool
	// OnGap is what a versioned consumer does with an event whose predecessor it has not applied, unless its handler
	// was registered with a policy of its own. Default: GapPark, which is right for any event.
	OnGap GapPolicy
	// GapWait is how long the policy GapWait waits before it parks; the topic-partition waits too. After a wait in vain
	// the topic-partition's gaps park at once for nine times as long. Default, and 0: 5 s.
	GapWait time.Duration
	// MaxJump is how far above the key's last version an event may be to be applied in spite of a gap. An event beyond it
	// parks under every OnGap policy: after it, all versions below would be skipped. Default: 1000.
	MaxJump int64
	// Batch is how many events of a partition may share a transaction; see [Inbox.BatchMiddleware]. Default: 200.
	Batch int
	// OnConflict says what to do with an id that comes back with another payload. Default: ConflictError.
	OnConflict ConflictMode
	// OnDead says what a dead letter does to the later events of its key. Default: DeadHold.
	OnDead DeadPolicy
	// MaxAttempts bounds the attempts that fail for an unknown reason. Default: 5. A handler may have rules of its
	// own; see [Retry].
	MaxAttempts int
	// HandlerTimeout bounds one attempt, transaction included, of one event or of a batch. It must be shorter than the
	// consumer group's rebalance timeout. Default: 10 s.
	HandlerTimeout time.Duration
	// RetryMin and RetryMax bound the pause between attempts: it starts at RetryMin, doubles, and carries jitter.
	// Default: 1 s and 30 s.
	RetryMin, RetryMax time.Duration
	// Host is the program around the inbox. Default: [Standalone].
	Host Host
	// Log receives one line per outcome other than applied and per failed attempt; never a payload.
	// Default: slog.Default().
	Log *slog.Logger
	// Registerer receives the metrics. Default: none.
	Registerer prometheus.Registerer
	// Spans records each attempt with an event of a sampled request. Default none.
	Spans *cloudevent.Spans
}

func (c Config) withDefaults() Config {
	c.Handlers = cmp.Or[Handlers](c.Handlers, anyHandler{})
	c.Host = cmp.Or[Host](c.Host, Standalone{})
	if c.Validate == nil {
		c.Validate = func(cloudevent.Event) error { return nil }
	}
	c.OnConflict = cmp.Or(c.OnConflict, ConflictError)
	c.OnDead = cmp.Or(c.OnDead, DeadHold)
	c.OnGap = cmp.Or(c.OnGap, GapPark)
	c.MaxJump = cmp.Or(c.MaxJump, 1000)
	c.GapWait = cmp.Or(c.GapWait, 5*time.Second)
	c.Batch = cmp.Or(c.Batch, 200)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 5)
	c.HandlerTimeout = cmp.Or(c.HandlerTimeout, 10*time.Second)
	c.RetryMin = cmp.Or(c.RetryMin, time.Second)
	c.RetryMax = cmp.Or(c.RetryMax, 30*time.Second)
	c.Log = cmp.Or(c.Log, slog.Default())
	return c
}

// validate reports every mistake at once.
func (c Config) validate() error {
	var errs []error
	demand := func(holds bool, format string, args ...any) {
		if !holds {
			errs = append(errs, fmt.Errorf("inbox: "+format, args...))
		}
	}
	demand(c.Consumer != "", "consumer is missing")
	demand(c.Pool != nil, "pool is missing")
	demand(c.OnConflict == ConflictError || c.OnConflict == ConflictWarn,
		"conflict mode %q is neither error nor warn", c.OnConflict)
	demand(c.OnDead == DeadHold || c.OnDead == DeadPass, "dead letter policy %q is neither hold nor pass", c.OnDead)
	demand(c.OnGap.valid(), "gap policy %q is none of allow, wait, park", c.OnGap)
	demand(c.Batch >= 1 && c.GapWait >= 0,
		"batch %d, gap wait %s: want at least 1 and not negative", c.Batch, c.GapWait)
	demand(c.MaxJump >= 1 && c.MaxAttempts >= 1,
		"max jump is %d, max attempts %d, want at least 1", c.MaxJump, c.MaxAttempts)
	demand(c.HandlerTimeout >= 0 && c.RetryMin >= 0 && c.RetryMax >= c.RetryMin,
		"handler timeout %s, retry %s to %s: want positive and in order", c.HandlerTimeout, c.RetryMin, c.RetryMax)
	return errors.Join(errs...)
}

// Inbox is one consumer's memory. It is safe for concurrent use.
type Inbox struct {
	cfg       Config
	deliverer *deliverer
}

// New checks the configuration and opens nothing: the tables must be there (migrations/inbox), the database need not
// be up yet.
func New(cfg Config) (*Inbox, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	log := cfg.Log.With("consumer", cfg.Consumer)
	order := keyOrder{&cfg}
	engine := &engine{cfg: &cfg, log: log, ids: idTable{&cfg, order}, order: order}
	guard := poison.New(poison.Config{
		Consumer: cfg.Consumer, Pool: cfg.Pool, Batch: cfg.Batch, MaxAttempts: cfg.MaxAttempts,
		Insist: engine.insist, Log: log,
	})
	d := &deliverer{engine: engine, metrics: newMetrics(cfg.Registerer, cfg.Consumer), guard: guard}
	d.limit.Store(int64(cfg.Batch))
	return &Inbox{cfg, d}, nil
}

// Config is the inbox's configuration with its defaults.
func (in *Inbox) Config() Config { return in.cfg }

// Leave says that a partition's events are no longer this process's and that none of them is under way, and returns how
// to record that. Until it is recorded the next owner counts its first events, as after a crash. It may be recorded
// late, also when the partition has come back meanwhile.
func (in *Inbox) Leave(topic string, partition int32) (record func(context.Context) error) {
	return in.deliverer.guard.Leave(topic, partition)
}

// Abandon says that a partition's events are no longer this process's, but that some may still be under way. The next
// owner counts its first events, as after a crash.
func (in *Inbox) Abandon(topic string, partition int32) { in.deliverer.guard.Abandon(topic, partition) }

// Close leaves every partition that is neither left nor abandoned. Call it when the last delivery has ended.
func (in *Inbox) Close(ctx context.Context) error { return in.deliverer.guard.Close(ctx) }

// Handlers say which events a consumer handles. A [*Mux] does.
type Handlers interface {
	// Accepts reports whether there is a handler for the type. Events of other types are acknowledged and counted as
	// ignored.
	Accepts(eventType string) bool
	// OnGap is the policy of a type that has one of its own; "" stands for [Config.OnGap].
	OnGap(eventType string) GapPolicy
}

// anyHandler accepts every event.
type anyHandler struct{}

func (anyHandler) Accepts(string) bool    { return true }
func (anyHandler) OnGap(string) GapPolicy { return "" }

// Host is the program around the inbox: what the inbox tells it, and asks of it. Embed [Standalone] for what does not
// matter. All methods are called from several goroutines at once.
type Host interface {
	// Pause is how a delivery waits for its next attempt, after the failure given (nil: for its predecessor): for d, or
	// less if what it waits for is back earlier, or more while it is known to be gone. It returns an error only when ctx,
	// the delivery's, has ended.
	//
	// With a d of 0 it must not wait: then it hears of the failure of a batch, whose events run one by one next, and, as
	// nil, of each event and batch that went well.
	Pause(ctx context.Context, failure error, d time.Duration) error
	// Handled is told the outcome of each delivery, once its transaction has ended, in the goroutine that handled it: to
	// wake what works on what was just committed. It must not block.
	Handled(event cloudevent.Event, outcome Outcome)
	// CopyDeadLetter is called once for each record that is given up, in the transaction that files it, to write a copy
	// for other tools, say to an outbox. Its error is the database's: the transaction is rolled back and tried again for
	// as long as it takes. Parked records are not given up.
	CopyDeadLetter(ctx context.Context, tx pgx.Tx, letter deadletter.Letter) error
}

// Standalone is the Host of an inbox that tells nothing: it waits by a timer and writes no copies.
type Standalone struct{}

// Pause implements [Host].
func (Standalone) Pause(ctx context.Context, _ error, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if err := failure.Sleep(ctx, d); err != nil {
		return fmt.Errorf("wait for retry: %w", err)
	}
	return nil
}

// Handled implements [Host].
func (Standalone) Handled(cloudevent.Event, Outcome) {}

// CopyDeadLetter implements [Host].
func (Standalone) CopyDeadLetter(context.Context, pgx.Tx, deadletter.Letter) error { return nil }
