package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/engine/audit"
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

// run takes up dead letters one after the other.
type run struct {
	*Replayer
	by, reason       string // the operator and the reason of the replay
	force, acceptGap bool   // the refusals to override; see [Options]
	dryRun           bool

	// next picks the first dead letter behind the position, or says errGone.
	next func(ctx context.Context, q audit.Querier) (deadletter.Letter, error)
	// try brings it to its outcome, which is "" where another replay settled it or something comes before it.
	try func(ctx context.Context, l deadletter.Letter, done *Result) error

	position position
	flowing  []byte // the key, once a dead letter of it succeeded or is passed over; nil is equal to no key
	alone    bool   // the dead letter may have ended a process: nothing else runs beside it
}

// position is a place in the order of a replay.
type position struct {
	key         []byte // as far as dead letters are ordered by it
	version, id int64
}

// Result is what became of one dead letter in a replay.
type Result struct {
	ID      int64  `json:"id"`
	EventID string `json:"event_id"`
	Key     string `json:"key"`
	// Outcome is applied, duplicate or stale, which settle the dead letter; failed, after which it waits as before;
	// refused, when it was not tried; or would_replay in a dry run.
	Outcome string `json:"outcome"`
	Code    string `json:"code,omitempty"` // of a failure or refusal
	Error   string `json:"error,omitempty"`
}

// Refused is the outcome of a dead letter that was not tried.
const Refused = "refused"

// The stable codes of refusals, besides id_conflict, too_old, no_handler, version_gap and version_jump. A record that
// is no event or breaks its contract is refused with the code of that: it has to be edited first.
const (
	CodeBehind      = "behind_waiting" // an earlier dead letter of its key holds it and was not picked, or did not succeed
	CodeReplayLimit = "replay_limit"   // it failed too often; see [Config]
	CodeIDChanged   = "id_changed"     // the edited record is another event: only its content may change
)

// takeUp brings the next dead letter to its outcome and moves on behind it, unless that is "": then look again. A key
// stops at its first failure or refusal. The error is errGone when there is no dead letter any more.
func (r *run) takeUp(ctx context.Context) (l deadletter.Letter, done Result, err error) {
	if l, err = r.next(ctx, r.inbox.Pool); err != nil {
		return l, done, err
	}
	done = Result{ID: l.ID, EventID: l.EventID, Key: deadletter.Text(string(l.Key))}
	if err := r.try(ctx, l, &done); err != nil || done.Outcome == "" {
		return l, done, err
	}
	r.position = position{deadletter.KeyStart(l.Key), l.Version, l.ID}
	failed, refused := done.Outcome == string(inbox.Failed), done.Outcome == Refused
	passed := failed && l.Holds && r.passes()
	if (failed || refused) && l.Holds && !passed {
		r.position.version, r.position.id = math.MaxInt64, math.MaxInt64
	}
	if r.dryRun {
		return l, done, nil // it counts what was picked, and changes nothing
	}
	if passed || !failed && !refused {
		r.flowing = l.Key
	}
	r.replays.WithLabelValues(done.Outcome).Inc()
	return l, done, r.updateReason(ctx, l, done)
}
