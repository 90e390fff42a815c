package inbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/deadletter"
)

// item is a message on its way through the inbox, or a dead letter that is replayed.
type item struct {
	ctx     context.Context
	msg     *message.Message
	next    message.HandlerFunc
	started time.Time
	event   event.Event
	origin  event.Origin
	hash    []byte
	isEvent bool // decoded
	ignored bool // without a handler
	replay  *replayed

	attempts      int // failed ones
	unknown       int // of these, the ones with an unknown error
	backoff       failure.Backoff
	firstFailedAt time.Time
	givenUpFor    error // why it becomes a dead letter
	wasLate       bool  // the last attempt ran out of time

	attemptResult
}

// attemptResult is the result of an item's last attempt. After a failure it is only the outcome Failed.
type attemptResult struct {
	outcome Outcome
	took    time.Duration      // handler's time
	stored  *deadletter.Letter // new in this attempt
}

// newItem gives up a message that is not an event or breaks its contract.
func (in *Inbox) newItem(msg *message.Message, next message.HandlerFunc) *item {
	it := &item{ctx: msg.Context(), msg: msg, next: next, started: time.Now(), backoff: in.cfg.backoff()}
	it.outcome = Failed
	it.origin, _ = event.OriginFrom(it.ctx)
	it.origin.Group = cmp.Or(it.origin.Group, in.cfg.Group)
	if it.origin.Headers == nil { // a stock Subscriber's: a middleware has mapped it, a handler may change it
		it.origin.Headers, it.origin.Key = event.MessageHeaders(msg), []byte(msg.Metadata[event.KeyMetadata])
	}
	var err error
	it.event, err = event.FromMessage(msg)
	it.isEvent = err == nil
	it.ignored = it.isEvent && !in.cfg.Accepts(it.event.Type)
	if it.hasHandler() {
		err = in.cfg.Validate(it.event)
	}
	if err != nil {
		it.givenUpFor = Permanent(err)
		it.noteFailure()
	}
	hash := sha256.Sum256(it.event.Data)
	it.hash = hash[:]
	return it
}

func (it *item) noteFailure() {
	if it.attempts++; it.attempts == 1 {
		it.firstFailedAt = time.Now()
	}
}

func (it *item) isDeadLetter() bool { return it.stored != nil && !it.stored.Parked() }

// hasHandler is true for events that may get a row with their id.
func (it *item) hasHandler() bool { return it.isEvent && !it.ignored }
