package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/fault"
	"example.com/twinbox/engine/inbox"
)

// Config says whose dead letters are taken up. Inbox and Handler are required.
type Config struct {
	Inbox *inbox.Inbox
	// Handler is the function that the inbox's middleware wraps.
	Handler message.HandlerFunc
	// MaxReplays is how many failed replays a dead letter may have before another one is refused. Default: 10.
	MaxReplays int
	// ResumeEvery is the time between two rounds of [Replayer.ResumeGaps]. Default: 5 s.
	ResumeEvery time.Duration
}

func (c Config) withDefaults() Config {
	c.MaxReplays = cmp.Or(c.MaxReplays, 10)
	c.ResumeEvery = cmp.Or(c.ResumeEvery, 5*time.Second)
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.Inbox == nil || c.Handler == nil {
		errs = append(errs, errors.New("replay: inbox or handler is missing"))
	}
	if c.MaxReplays < 1 || c.ResumeEvery < 0 {
		errs = append(errs, fmt.Errorf("replay: max replays %d, resume every %s: want at least 1 and positive",
			c.MaxReplays, c.ResumeEvery))
	}
	return errors.Join(errs...)
}

// Replayer takes up the dead letters and parked events of one consumer. It is safe for concurrent use.
type Replayer struct {
	cfg     Config
	inbox   inbox.Config
	replays *prometheus.CounterVec
}

// New checks the configuration. From now on parked events of the inbox go on by themselves as soon as their gap closes,
// so call it before the inbox's first delivery.
func New(cfg Config) (*Replayer, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &Replayer{cfg: cfg, inbox: cfg.Inbox.Config()}
	r.replays = inbox.Register(r.inbox.Registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "inbox_replays_total",
		Help: "Dead letters that a replay took up, by what became of them.",
	}, []string{"consumer", "outcome"})).MustCurryWith(prometheus.Labels{"consumer": r.inbox.Consumer})
	r.inbox.Log = r.inbox.Log.With("consumer", r.inbox.Consumer)
	cfg.Inbox.ResumeBy(r)
	return r, nil
}

// passes says that a dead letter does not keep back what comes after it.
func (r *Replayer) passes() bool { return r.inbox.OnDead == inbox.DeadPass }

// crash is the crash point inbox.<consumer>.<point>.
func (r *Replayer) crash(point string) {
	if fault.Enabled {
		fault.Here("inbox." + r.inbox.Consumer + "." + point)
	}
}

// Replay takes up the waiting dead letters of this consumer that the filter picks: through the inbox, under their own
// ids, key by key in the order of version and arrival. What parked behind a letter is taken up after it, picked or not,
// so that a key flows again. Each dead letter has one transaction: it locks the row, claims the id, compares the
// version, runs the handler, settles the dead letter and writes the audit row. So each event has its effect at most
// once and never over newer state, also if processes are killed and many replays and consumers run at once.
//
// A key stops at its first failure or refusal, other keys go on. A failed letter waits as before with its new error.
// When the surroundings fail (the database is down), the replay ends with an error and counts it against no letter;
// call it again to go on. The report is right also when there is an error.
func (r *Replayer) Replay(ctx context.Context, f deadletter.Filter, o Options) (Report, error) {
	run, err := r.newRun(f, o)
	if err != nil {
		return Report{}, err
	}
	started := time.Now()
	for err == nil && !run.ended && !run.reachedLimit() {
		err = run.replayNext(ctx)
	}
	run.report.Took = time.Since(started)
	return run.report, err
}

// run is one replay.
type run struct {
	*Replayer
	options    Options
	where      string
	args       []any
	position   position
	lastKey    []byte            // that was looked at last
	flowing    []byte            // the key, once a letter of it succeeded or is passed over; nil is equal to no key
	only       int64             // the one letter that is picked, of a replay of its key; else 0
	unanswered *cloudevent.Event // of the letter at work, when its commit was sent and not answered
	alone      bool              // the letter may have ended a process: nothing else runs beside it
	ended      bool
	report     Report
}

// position is a place in the order of a replay.
type position struct {
	key         []byte // as far as letters are ordered by it
	version, id int64
}

func (r *Replayer) newRun(f deadletter.Filter, o Options) (*run, error) {
	switch {
	case o.By == "":
		return nil, &deadletter.Error{Code: deadletter.CodeMissingOperator, Detail: "say who replays"}
	case f.Consumer != "" && f.Consumer != r.inbox.Consumer:
		return nil, &deadletter.Error{Code: deadletter.CodeInvalidFilter, Detail: "the filter names another consumer"}
	case f.State != "" && f.State != deadletter.Waiting:
		return nil, &deadletter.Error{Code: deadletter.CodeNotWaiting, Detail: "only waiting letters can be replayed"}
	case o.Limit < 0 || f.Limit < 0:
		return nil, &deadletter.Error{Code: deadletter.CodeInvalidFilter, Detail: "a limit is not negative"}
	}
	if o.Limit == 0 {
		o.Limit = f.Limit
	}
	if o.OnProgress == nil {
		o.OnProgress = func(Result) {}
	}
	f.Consumer, f.State = r.inbox.Consumer, deadletter.Waiting
	if o.DryRun {
		o.Pace = nil
	}
	n := &run{Replayer: r, options: o}
	n.where, n.args = f.Where(6)
	n.position = position{key: []byte{}, version: -1, id: -1}
	return n, nil
}

// reachedLimit says that as many letters were looked at as may be.
func (r *run) reachedLimit() bool { return r.options.Limit > 0 && r.report.Matched >= r.options.Limit }

const dryRunPage = 200

// replayNext finds the next letter and takes it up. One at a time: what the consumer parks meanwhile behind the key at
// work is then found in its place. In a dry run nothing changes, so that a page can be read at once.
func (r *run) replayNext(ctx context.Context) error {
	limit := 1
	if r.options.DryRun {
		limit = dryRunPage
	}
	letters, err := r.selectNext(ctx, r.inbox.Pool, limit)
	if err != nil {
		return err
	}
	r.ended = len(letters) == 0 // a page of large letters is short
	for _, l := range letters {
		if r.reachedLimit() {
			return nil
		}
		if err := r.replayLetter(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// replayLetter brings one letter to its outcome and moves on.
func (r *run) replayLetter(ctx context.Context, l deadletter.Letter) error {
	ordered := deadletter.KeyStart(l.Key)
	if bytes.Equal(r.position.key, ordered) && r.position.id == math.MaxInt64 {
		return nil // read ahead in a dry run, of a key that has stopped
	}
	if err := r.awaitPace(ctx); err != nil {
		return err
	}
	done, err := r.tryLetter(ctx, l)
	if err != nil {
		return err
	}
	if done.Outcome == "" { // another replay settled it, or something came before it: look again
		return nil
	}
	if !bytes.Equal(r.lastKey, l.Key) || r.report.Keys == 0 {
		r.lastKey = l.Key
		r.report.Keys++
	}
	r.position = position{ordered, l.Version, l.ID}
	failed, refused := done.Outcome == string(inbox.Failed), done.Outcome == Refused
	passed := failed && l.Holds && r.passes()
	if (failed || refused) && l.Holds && !passed {
		r.position.version, r.position.id = math.MaxInt64, math.MaxInt64
	}
	if (passed || !failed && !refused) && !r.options.DryRun { // which counts what was picked
		r.flowing = l.Key
	}
	if err := r.updateReason(ctx, l, done); err != nil {
		return err
	}
	r.report.add(done)
	if !r.options.DryRun {
		r.replays.WithLabelValues(done.Outcome).Inc()
	}
	r.options.OnProgress(done)
	return nil
}

// tryLetter tries the letter, or says what would be tried.
func (r *run) tryLetter(ctx context.Context, l deadletter.Letter) (Result, error) {
	done := Result{ID: l.ID, EventID: l.EventID, Key: deadletter.Text(string(l.Key))}
	var err error
	switch {
	case r.options.DryRun:
		err = r.checkLetter(ctx, l, &done)
	case r.only != 0:
		err = r.retryCounted(ctx, l, &done)
	default:
		err = r.retryLetter(ctx, l, &done)
	}
	return done, err
}

// awaitPace keeps to the rate.
func (r *run) awaitPace(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("replay: %w", context.Cause(ctx))
	}
	if err := r.options.Pace.Await(ctx); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	return nil
}
