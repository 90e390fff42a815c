package consumer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/fault"
	"example.com/twinbox/engine/kafka/internal/reader"
	"example.com/twinbox/engine/kafka/progress"
)

// errPartitionLost is the cause with which the context of a message ends when its partition is gone.
var errPartitionLost = errors.New("partition lost")

// partition is one that this member owns, for as long as it does. Three goroutines share it: one takes records from
// sarama (queue.go), the worker calls the handler (worker.go), and sarama's for the claim waits here for the end and
// bounds it.
type partition struct {
	member  *Consumer
	session sarama.ConsumerGroupSession
	claim   sarama.ConsumerGroupClaim
	at      reader.TopicPartition
	reader  *reader.Reader
	log     *slog.Logger

	ctx     context.Context // parent of every message's
	cancel  context.CancelCauseFunc
	revoked chan struct{} // the group gives the partition to another member
	revoke  func()
	leaving chan struct{}          // nothing more is to be handed out
	left    atomic.Bool            // the group no longer waits for this member: nothing is marked any more
	busy    atomic.Bool            // when it is left, messages are still being worked on
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
		at:       reader.TopicPartition{Topic: claim.Topic(), Partition: claim.Partition()},
		reader:   c.reader,
		log:      c.log.With("topic", claim.Topic(), "partition", claim.Partition()),
		revoked:  make(chan struct{}),
		leaving:  make(chan struct{}),
		suspects: make(chan struct{}, 1),
		queue:    newQueue(c.cfg.MaxBytes, claim.InitialOffset()),
		progress: progress.New(c.cfg.Now, claim.Topic(), claim.Partition()),
		pauses:   failure.Backoff{Min: c.cfg.NackBackoff, Max: maxNackBackoffs * c.cfg.NackBackoff},
	}
	p.topicID.Store(new(string))
	p.revoke = sync.OnceFunc(func() { close(p.revoked) })
	values := p.progress.Into(c.values)
	// Before its first fetch sarama has the end of the log from the request that found the offset to begin at.
	p.ctx, p.cancel = context.WithCancelCause(cloudevent.WithLogEnd(values, claim.HighWaterMarkOffset()))
	return p
}

// own lets the worker work until the partition is to be let go, and then gives it its time to end.
func (p *partition) own(work func()) {
	var reading sync.WaitGroup
	reading.Go(func() { p.queue.fill(p.claim.Messages(), p.leaving) })
	defer reading.Wait()
	defer p.left.Store(true)
	defer p.cancel(errPartitionLost)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		work()
	}()
	p.wait(finished)
	close(p.leaving)
	p.drain(finished)
	p.awaitRevocation()
}

// awaitRevocation returns when sarama, too, is done with a partition that the group takes away. The member hears of it
// first, see watchedStrategy; a claim that ended before sarama had revoked it would count as a failure and end the
// session, and with it all the other partitions.
func (p *partition) awaitRevocation() {
	for isClosed(p.revoked) {
		select {
		case _, ok := <-p.claim.Messages():
			if ok {
				continue
			}
		case <-p.session.Context().Done():
		}
		return
	}
}

// wait returns when the partition is to be let go. Until then it watches the worker, and ends the whole membership when
// that is stuck: the process is to be started again.
func (p *partition) wait(finished <-chan struct{}) {
	ticker := time.NewTicker(p.member.cfg.LookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-finished:
		case <-p.revoked:
		case <-p.session.Context().Done():
		case <-p.member.ctx.Done():
		case <-ticker.C:
			if stuck, err := p.member.stalled(p.progress.Standing()); stuck > p.member.cfg.StopAfter {
				p.member.stop(err)
			}
			continue
		}
		return
	}
}

// drain gives the handler its time to finish, then cancels it and waits as long again. Nothing new goes out, and what
// is not acknowledged stays for the next owner. What is acknowledged on the way is still committed: as long as this
// method has not returned, the group waits for the member. A handler that ignores its context is left behind.
func (p *partition) drain(finished <-chan struct{}) {
	if p.isLost() || !p.await(finished) {
		p.cancel(errPartitionLost)
		if !p.await(finished) {
			p.busy.Store(true)
		}
	}
}

// await reports whether the worker ended in time. The loss of the group's membership cuts it short once.
func (p *partition) await(finished <-chan struct{}) bool {
	timer := time.NewTimer(p.member.cfg.DrainTimeout)
	defer timer.Stop()
	lost := p.session.Context().Done()
	if p.session.Context().Err() != nil {
		lost = nil
	}
	for {
		select {
		case <-finished:
			return true
		case <-timer.C:
			return false
		case <-lost:
			if p.isLost() {
				return false
			}
			lost = nil
		}
	}
}

// isLost reports whether the group has already given the partition away without waiting for this member.
func (p *partition) isLost() bool {
	ctx := p.session.Context()
	if ctx.Err() == nil || p.member.ctx.Err() != nil {
		return false
	}
	cause := context.Cause(ctx)
	return !errors.Is(cause, sarama.ErrRebalanceInProgress) &&
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

func isClosed(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	default:
		return false
	}
}
