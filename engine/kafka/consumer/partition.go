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
	"example.com/twinbox/engine/fault"
	"example.com/twinbox/engine/kafka/internal/reader"
	"example.com/twinbox/engine/kafka/progress"
)

// errPartitionLost is the cause with which the context of a message ends when its partition is gone.
var errPartitionLost = errors.New("partition lost")

// partition is one that this member owns, for as long as it does. Three goroutines share it: one takes records from
// sarama (readahead.go), the [worker] calls the handler, and sarama's for the claim waits here for the end and bounds
// it.
type partition struct {
	member  *member
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
	topicID atomic.Pointer[string] // of the topic that is read; see topic_id.go

	progress *progress.Progress
	suspects chan struct{} // sarama could not read something that may be here
	ahead    *readAhead
}

func newPartition(m *member, session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) *partition {
	p := &partition{
		member:   m,
		session:  session,
		claim:    claim,
		at:       reader.TopicPartition{Topic: claim.Topic(), Partition: claim.Partition()},
		reader:   m.reader,
		log:      m.log.With("topic", claim.Topic(), "partition", claim.Partition()),
		revoked:  make(chan struct{}),
		leaving:  make(chan struct{}),
		suspects: make(chan struct{}, 1),
		ahead:    newReadAhead(m.cfg.MaxBytes),
		progress: progress.New(m.cfg.Now),
	}
	p.revoke = sync.OnceFunc(func() { close(p.revoked) })
	values := p.progress.Into(m.values)
	// Before its first fetch sarama has the end of the log from the request that found the offset to begin at.
	p.ctx, p.cancel = context.WithCancelCause(cloudevent.WithLogEnd(values, claim.HighWaterMarkOffset()))
	return p
}

// own lets the worker work until the partition is to be let go, and then gives it its time to end.
func (p *partition) own(work func()) {
	var reading sync.WaitGroup
	reading.Go(func() { p.ahead.run(p.claim.Messages(), p.leaving) })
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

// wait returns when the partition is to be let go, and watches the worker until then.
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
			p.stopIfStalled()
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

// suspect may be called from any goroutine.
func (p *partition) suspect() {
	select {
	case p.suspects <- struct{}{}:
	default:
	}
}

// mark notes the offset for the next commit, unless it is no longer this member's to commit.
func (p *partition) mark(offset int64) {
	fault.Here("kafka.before_mark")
	if !p.left.Load() {
		p.session.MarkOffset(p.at.Topic, p.at.Partition, offset, p.knownID())
	}
	fault.Here("kafka.after_mark")
}
