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

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
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

// Replayer takes up the dead letters and parked events of one consumer. It is safe for concurrent use.
type Replayer struct {
	cfg     Config
	inbox   inbox.Config
	replays *prometheus.CounterVec
}

// New checks the configuration. From now on parked events of the inbox go on by themselves as soon as their gap closes,
// so call it before the inbox's first delivery.
func New(cfg Config) (*Replayer, error) {
	cfg.MaxReplays = cmp.Or(cfg.MaxReplays, 10)
	cfg.ResumeEvery = cmp.Or(cfg.ResumeEvery, 5*time.Second)
	if cfg.Inbox == nil || cfg.Handler == nil || cfg.MaxReplays < 1 || cfg.ResumeEvery < 0 {
		return nil, fmt.Errorf("replay: max replays %d, resume every %s: want at least 1, positive, an inbox and a handler",
			cfg.MaxReplays, cfg.ResumeEvery)
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

	pick string // the condition of those that the run takes up
	args []any  // its parameters, which are numbered from 6 on
	// try brings one to its outcome, or says errGone where another replay settled it or something comes before it.
	try func(ctx context.Context, l deadletter.Letter, done *Result) error

	key         []byte // of the position, as far as dead letters are ordered by it
	version, id int64  // of the position
	flowing     []byte // the key, once a dead letter of it succeeded or is passed over; nil is equal to no key
	alone       bool   // the dead letter may have ended a process: nothing else runs beside it
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

func (r *Result) refuse(why *inbox.Refusal) {
	r.Outcome, r.Code, r.Error = Refused, why.Code, why.Error()
}

const nextLetter = `
select ` + deadletter.Columns + ` from public.dead_letter
where consumer = $1 and state = 'waiting' and (key_start, version, id) > ($2, $3, $4) and %s
order by key_start, version, id limit 1`

// next is the first dead letter behind the position. It finds one at a time: what the consumer parks meanwhile behind
// the key at work is then found in its place.
func (r *run) next(ctx context.Context, q audit.Querier) (deadletter.Letter, error) {
	args := []any{r.inbox.Consumer, r.key, r.version, r.id, r.flowing}
	return selectLetter(ctx, q, fmt.Sprintf(nextLetter, r.pick), append(args, r.args...)...)
}

// takeUp brings the next dead letter to its outcome and moves on behind it, unless that is "": then look again. A key
// stops at its first failure or refusal. The error is errGone when there is no dead letter any more.
func (r *run) takeUp(ctx context.Context) (done Result, err error) {
	l, err := r.next(ctx, r.inbox.Pool)
	if err != nil {
		return done, err
	}
	done = Result{ID: l.ID, EventID: l.EventID, Key: deadletter.Text(string(l.Key))}
	switch err := r.try(ctx, l, &done); {
	case errors.Is(err, errGone):
		return Result{}, nil
	case err != nil:
		return done, err
	}
	r.key, r.version, r.id = deadletter.KeyStart(l.Key), l.Version, l.ID
	failed, refused := done.Outcome == string(inbox.Failed), done.Outcome == Refused
	flows := !failed && !refused || failed && l.Holds && r.passes()
	if !flows && l.Holds {
		r.version, r.id = math.MaxInt64, math.MaxInt64
	}
	if r.dryRun {
		return done, nil // it counts what was picked, and changes nothing
	}
	if flows {
		r.flowing = l.Key
	}
	r.replays.WithLabelValues(done.Outcome).Inc()
	return done, nil
}
