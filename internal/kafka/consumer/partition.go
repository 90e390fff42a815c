package consumer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/kafka/internal/reader"
	"example.com/twinbox/internal/kafka/progress"
)

var (
	// errPartitionLost is the cause with which the context of a message ends when its partition is gone.
	errPartitionLost = errors.New("partition lost")
	// errRevoked is why a partition is let go that the group gives to another member.
	errRevoked = errors.New("partition revoked")
	// errIncomplete is the error of a handler that has none and leaves something undone.
	errIncomplete = errors.New("not all messages were handled")
)

// partition is one that this member owns, for as long as it does. Three goroutines share it: one takes records from
// sarama (queue.fill), the worker calls the handler (work), and sarama's for the claim waits for the end and bounds it
// (own).
type partition struct {
	member  *Consumer
	session sarama.ConsumerGroupSession
	claim   sarama.ConsumerGroupClaim
	at      kafka.TopicPartition
	reader  *reader.Reader
	log     *slog.Logger

	ctx     context.Context // parent of every message's
	cancel  context.CancelCauseFunc
	leaving context.Context // ends when nothing more is to be handed out
	leave   context.CancelCauseFunc
	left    atomic.Bool            // the group no longer waits for this member: nothing is marked any more
	topicID atomic.Pointer[string] // of what is read; empty while it is not known, and with old brokers

	progress *progress.Progress
	suspects chan struct{} // sarama could not read something that may be here
	queue    *queue

	// What follows is the worker's alone.
	pauses    failure.Backoff // between calls that leave something undone; one that gets further begins anew
	suspicion int             // errors of sarama's since the last record
	done      int64           // offset behind what is handled
	stored    int64           // as far as it is stored; see positions.go
	unsure    bool            // whether what was handled since is still in the store
	noted     time.Time
	damaged   bool // a gap is pending, or was: sarama's reader stands before it for ever
}

func newPartition(c *Consumer, session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) *partition {
	p := &partition{
		member:   c,
		session:  session,
		claim:    claim,
		at:       kafka.TopicPartition{Topic: claim.Topic(), Partition: claim.Partition()},
		reader:   c.reader,
		log:      c.log.With("topic", claim.Topic(), "partition", claim.Partition()),
		suspects: make(chan struct{}, 1),
		queue:    newQueue(c.cfg.MaxBytes, claim.InitialOffset()),
		progress: progress.New(c.cfg.Now, claim.Topic(), claim.Partition()),
		pauses:   failure.Backoff{Min: c.cfg.NackBackoff, Max: maxNackBackoffs * c.cfg.NackBackoff},
	}
	p.topicID.Store(new(string))
	p.leaving, p.leave = context.WithCancelCause(c.ctx)
	values := p.progress.Into(c.values)
	// Before its first fetch sarama has the end of the log from the request that found the offset to begin at.
	p.ctx, p.cancel = context.WithCancelCause(cloudevent.WithLogEnd(values, claim.HighWaterMarkOffset()))
	return p
}

// own lets the worker work until the partition is to be let go. Then nothing new goes out, the handler gets its time to
// finish, is cancelled, and is waited for as long again. The loss of the group's membership cuts the first of the two
// short. What is not acknowledged stays for the next owner; what is acknowledged on the way is still committed: as long
// as this method has not returned, the group waits for the member. A handler that ignores its context is left behind,
// and then the partition is not idle.
func (p *partition) own(work func()) (idle bool) {
	defer context.AfterFunc(p.session.Context(), func() {
		p.leave(nil)
		if p.isLost() {
			p.cancel(errPartitionLost)
		}
	})()
	var reading sync.WaitGroup
	reading.Go(func() {
		p.queue.fill(p.claim.Messages(), p.leaving.Done())
		p.leave(nil) // sarama gives no more of it
	})
	defer reading.Wait()
	defer p.left.Store(true)
	defer p.cancel(errPartitionLost)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		work()
	}()
	select {
	case <-finished:
	case <-p.leaving.Done():
	}
	p.leave(nil)
	select {
	case <-finished:
	case <-p.ctx.Done():
	case <-time.After(p.member.cfg.DrainTimeout):
		p.cancel(errPartitionLost)
	}
	select {
	case <-finished:
		idle = true
	case <-time.After(p.member.cfg.DrainTimeout):
	}
	if errors.Is(context.Cause(p.leaving), errRevoked) {
		// Until sarama, too, is done with the partition. The member hears of a revocation first, see watchedStrategy; a claim
		// that ended before sarama had revoked it would count as a failure and end the session, and with it all the other
		// partitions.
		for range p.claim.Messages() {
		}
	}
	return idle
}

// isLost reports whether the group, when the session ended, had given the partition away without waiting for this
// member.
func (p *partition) isLost() bool {
	cause := context.Cause(p.session.Context())
	return p.member.ctx.Err() == nil && !errors.Is(cause, sarama.ErrRebalanceInProgress) &&
		!errors.Is(cause, sarama.ErrSessionConsumeClaimExited) &&
		!errors.Is(cause, sarama.ErrSessionPartitionCountChanged)
}

// mark notes the offset for the next commit, unless it is no longer this member's to commit.
func (p *partition) mark(offset int64) {
	fault.Here("kafka.before_mark")
	if !p.left.Load() {
		p.session.MarkOffset(p.at.Topic, p.at.Partition, offset, *p.topicID.Load())
	}
	fault.Here("kafka.after_mark")
}

// work has the partition's records delivered, in order, until the partition is to be let go or has to be read anew.
func (p *partition) work() {
	looks := time.NewTicker(p.member.cfg.LookEvery)
	defer looks.Stop()
	// A partition under load notes as often as makes a crash repeat no more than a commit interval, since what is stored
	// is committed as often; one at rest with each batch.
	noteEvery := p.member.cfg.CommitInterval / 2
	notes := time.NewTicker(noteEvery)
	defer notes.Stop()
	defer p.note()
	for p.receive(looks.C, notes.C) {
		giveBack := p.gather()
		if giveBack == nil {
			return
		}
		batch := p.queue.take(p.member.cfg.Batch)
		p.suspicion = 0
		fault.Here("kafka.taken")
		p.progress.Begin()
		handled, err := p.member.handle(p.ctx, decodeAll(p.ctx, p.member.cfg.Group, batch))
		giveBack()
		switch handled = max(0, min(handled, len(batch))); {
		case handled == len(batch):
			err = nil
		case err == nil:
			err = errIncomplete
		}
		failed := batch[min(handled, len(batch)-1)].Offset // if there is an error; what is released is no longer here
		if handled > 0 {
			p.pauses.Reset()
			p.done = batch[handled-1].last + 1
			if p.member.cfg.Positions == nil {
				p.stored = p.done
				p.mark(p.done)
			}
		}
		p.queue.release(handled)
		p.progress.End(handled, err)
		if time.Since(p.noted) >= noteEvery && !p.note() {
			return
		}
		if p.damaged && p.queue.held() == 0 {
			return // what is behind the gap is read from the committed offset on, by a new session
		}
		if err != nil && !p.backOff(failed, err) {
			return
		}
	}
}

// receive waits until something is held; false when the partition is to be let go.
func (p *partition) receive(looks, notes <-chan time.Time) bool {
	for p.queue.held() == 0 {
		select {
		case <-p.queue.come:
		case <-p.leaving.Done():
			return false
		case <-p.suspects:
			p.suspicion++
			p.look()
		case <-looks:
			p.look()
		case <-notes:
			if !p.note() {
				return false
			}
		}
	}
	return true
}

// comingLimit is how long a batch waits for what is about to come. It comes within microseconds, unless what is left on
// the log is of no interest (control records) or takes another fetch.
const comingLimit = 5 * time.Millisecond

// gather waits for what is about to come and, unless that makes a full batch, until it is the partition's turn; what
// comes meanwhile is in the batch, too. It returns how to give the turn back, nil when the partition is to be let go.
//
// About to come is what sarama knows of, as far as there is room for it, up to a full batch. It hands records over one
// by one: without a look at where the log ends, the records of one answer would be as many batches as the scheduler
// likes.
func (p *partition) gather() (giveBack func()) {
	var waited <-chan time.Time
	for !p.damaged && p.queue.expects(p.claim.HighWaterMarkOffset(), p.member.cfg.Batch) {
		if waited == nil {
			waited = time.After(comingLimit)
		}
		select {
		case <-p.queue.come:
			continue
		case <-waited:
		case <-p.leaving.Done():
		}
		break
	}
	giveBack = func() {}
	if p.queue.held() < p.member.cfg.Batch {
		giveBack = p.member.turns.take(p.leaving.Done())
	}
	if giveBack != nil && p.leaving.Err() != nil {
		giveBack()
		return nil
	}
	return giveBack
}

// backOff waits before what is left is handed over again; false when the partition is to be let go.
func (p *partition) backOff(offset int64, err error) bool {
	if p.leaving.Err() != nil {
		return false // and the error, if there is one, is most often that
	}
	if !p.pauses.Began() {
		p.log.Warn("handle messages, trying again", "offset", offset, "error", err)
	}
	return failure.Sleep(p.leaving, p.pauses.Next()) == nil
}

// turns lets so many partitions at a time hand over what they have, and the others wait: what they receive meanwhile
// shares their next call. Without it every record that arrives alone would get a call, and so a transaction, of its
// own, and most of them just when the machine has no time for them. A partition that has a full batch does not ask.
//
// A call that lasts keeps its partition busy but not its turn: a handler that is slow, hangs or waits for a database
// must not hold up the other partitions.
type turns struct {
	free  chan struct{} // a place for each turn that is taken
	limit time.Duration
}

// turnLimit is how long a call may keep its turn: longer than a transaction of a few records takes on a busy
// machine, and too short to be noticed.
const turnLimit = 10 * time.Millisecond

func newTurns(parallel int, limit time.Duration) turns {
	return turns{free: make(chan struct{}, parallel), limit: limit}
}

// take waits for a turn. It returns nil when done is closed first, else how to give the turn back.
func (t turns) take(done <-chan struct{}) (giveBack func()) {
	select {
	case t.free <- struct{}{}:
	case <-done:
		return nil
	}
	once := sync.OnceFunc(func() { <-t.free })
	timer := time.AfterFunc(t.limit, once)
	return func() {
		timer.Stop()
		once()
	}
}
