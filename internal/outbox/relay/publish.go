package relay

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
)

var (
	errPublishTimeout = errors.New("outbox: the publisher did not answer in time")
	// errBehind is the result of a record whose key failed earlier in the call. The publisher may have taken it; it is sent
	// again behind the earlier one.
	errBehind = errors.New("outbox: an earlier record of the key failed")
)

// publish sends the records of a page until the publisher has taken each, or the record is held.
func (l *leader) publish(ctx context.Context, page []record) (settled settlement, err error) {
	unsent := l.holdParked(page, &settled)
	began, pauses := time.Now(), failure.Backoff{Min: l.cfg.retryMin, Max: l.cfg.RetryMax}
	for attempt := 1; len(unsent) > 0; attempt++ {
		results, err := l.send(ctx, unsent)
		if err != nil {
			return settled, err
		}
		taken := slices.Contains(results, nil)
		unsent = l.settle(unsent, results, &settled, l.mayPark(results, attempt, time.Since(began), taken))
		if len(unsent) == 0 {
			break
		}
		if err := l.backOff(ctx, pauses.Next()); err != nil {
			return settled, err
		}
	}
	return settled, nil
}

// mayPark decides between waiting for the publisher and parking keys whose records failed for reasons that may pass.
//
// If it took others, or has taken any since keys were parked last, it works, and only some keys fail: a few attempts are
// enough. If it takes none it is probably down, and then waiting holds up no other key, for a while.
func (l *leader) mayPark(results []error, attempt int, since time.Duration, taken bool) bool {
	if !slices.ContainsFunc(results, hasFailed) || l.cfg.Destination.Down() {
		return false
	}
	works := taken || l.takenAt.After(l.parkedAt) && !l.parkedAt.IsZero()
	patience := l.cfg.Patience
	if works {
		patience = 0
	}
	if attempt < l.cfg.Attempts || since < patience {
		return false
	}
	l.parkedAt = time.Now()
	return true
}

// backOff waits before failed records are sent again. A session that has ended meanwhile is an error: another relay may
// lead.
func (l *leader) backOff(ctx context.Context, pause time.Duration) error {
	if err := l.cfg.Destination.Pause(ctx, pause); err != nil {
		return err
	}
	if err := l.maintain(ctx); err != nil {
		return err
	}
	return l.ping(ctx)
}

// ping keeps the session, and with it the leadership.
func (l *leader) ping(ctx context.Context) error {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	return l.conn.Ping(ctx)
}

// send makes one call of the publisher per topic, all together, and returns each record's result; nil is taken. It pings
// the session while the calls run.
func (l *leader) send(ctx context.Context, records []record) ([]error, error) {
	call := l.start(ctx, records, l.singly)
	lost := time.After(l.cfg.PublishTimeout + (l.cfg.Lease-l.cfg.PublishTimeout)/2)
	pings := time.NewTicker(l.cfg.Lease / 3)
	defer pings.Stop()
	for {
		select {
		case <-call.ended:
			l.singly = slices.ContainsFunc(call.results, isWholeCall) || l.singly && countTaken(call.results) < len(records)
			l.note(records, call.results)
			l.logTaken(ctx, records, call.results)
			return call.results, nil
		case <-pings.C:
			if err := l.ping(ctx); err != nil {
				return nil, err
			}
		case <-lost:
			return nil, errPublishTimeout
		}
	}
}

// note remembers what the results tell of the publisher, and logs a failure.
func (l *leader) note(records []record, results []error) {
	if slices.Contains(results, nil) {
		l.takenAt = time.Now()
		l.health.well()
	}
	failed := slices.IndexFunc(results, isTransient)
	if failed < 0 {
		return
	}
	if !slices.Contains(results, nil) {
		l.failedAt = time.Now()
	}
	why, e := results[failed], &records[failed].Event
	l.cfg.Destination.Report(why)
	l.health.fail(why)
	l.cfg.Log.Warn("publish failed", "events", len(results)-countTaken(results), "event_id", e.ID,
		"correlation_id", e.CorrelationID(), "error", why)
}

func countTaken(results []error) (taken int) {
	for _, why := range results {
		if why == nil {
			taken++
		}
	}
	return taken
}

// publishCall is the publishing of some records, in goroutines of its own. It may outlive its session; no other call is
// made before it has ended.
type publishCall struct {
	results []error // per record
	ended   chan struct{}
}

// wait waits for the end of the call for d.
func (c *publishCall) wait(d time.Duration) error {
	if c == nil {
		return nil
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(d):
		return errPublishTimeout
	}
}

// start begins a call for each topic, or one for each record. Within a topic the records keep their order.
func (r *Relay) start(ctx context.Context, records []record, singly bool) *publishCall {
	c := &publishCall{results: make([]error, len(records)), ended: make(chan struct{})}
	r.call = c
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), r.cfg.PublishTimeout, errPublishTimeout)
	go func() {
		defer close(c.ended)
		defer cancel()
		fault.Here("relay.publish.before")
		began := time.Now()
		var topics sync.WaitGroup
		for topic, indexes := range groupByTopic(records) {
			topics.Go(func() { r.publishTopic(ctx, topic, records, indexes, singly, c.results) })
		}
		topics.Wait()
		r.metrics.seconds.Observe(time.Since(began).Seconds())
		r.metrics.batch.Observe(float64(len(records)))
		fault.Here("relay.publish.after")
	}()
	return c
}

func groupByTopic(records []record) map[string][]int {
	topics := map[string][]int{}
	for i := range records {
		topics[records[i].Topic] = append(topics[records[i].Topic], i)
	}
	return topics
}

// publishTopic makes the call for one topic and writes the results of its records. A record behind its key's first
// failure counts as failed, even if the publisher took it.
func (r *Relay) publishTopic(
	ctx context.Context, topic string, records []record, indexes []int, singly bool, results []error,
) {
	messages, events := make([]*message.Message, len(indexes)), make([]*cloudevent.Event, len(indexes))
	for i, index := range indexes {
		events[i] = &records[index].Event
		messages[i] = events[i].Message()
	}
	end := r.cfg.Spans.Send(topic, events)
	publish := r.publishTogether
	if singly {
		publish = r.publishSingly
	}
	failures := publish(ctx, topic, messages)
	var first error
	failed := map[string]bool{}
	for i, index := range indexes {
		why, key := failures[i], events[i].Key
		if failed[key] {
			why = errBehind
		}
		results[index] = why
		if why == nil {
			r.metrics.published.WithLabelValues(topic).Inc()
			continue
		}
		failed[key] = true
		first = cmp.Or(first, why)
		r.metrics.failures.WithLabelValues(topic, classOf(why)).Inc()
	}
	end(first)
}

// publishTogether makes one call for the messages and returns the failures by their indexes.
func (r *Relay) publishTogether(ctx context.Context, topic string, messages []*message.Message) map[int]error {
	err := r.callPublisher(ctx, topic, messages...)
	if err == nil {
		return nil
	}
	if partial, is := errors.AsType[FailedIndexes](err); is {
		return partial.FailedIndexes()
	}
	if len(messages) > 1 {
		err = wholeCallError{err}
	}
	failures := make(map[int]error, len(messages))
	for i := range messages {
		failures[i] = err
	}
	return failures
}

// publishSingly makes a call for each message, and none for a message behind its key's failed one.
func (r *Relay) publishSingly(ctx context.Context, topic string, messages []*message.Message) map[int]error {
	failures, failed := map[int]error{}, map[string]bool{}
	for i, m := range messages {
		key := m.Metadata.Get(cloudevent.KeyMetadata)
		switch {
		case failed[key]: // its result is errBehind
		case ctx.Err() != nil:
			failures[i] = wholeCallError{context.Cause(ctx)}
		default:
			if why := r.publishTogether(ctx, topic, messages[i:i+1])[0]; why != nil {
				failures[i], failed[key] = why, true
			}
		}
	}
	return failures
}

func (r *Relay) callPublisher(ctx context.Context, topic string, messages ...*message.Message) error {
	if p, takesContext := r.cfg.Publisher.(ContextPublisher); takesContext {
		return p.PublishContext(ctx, topic, messages...)
	}
	return r.cfg.Publisher.Publish(topic, messages...)
}

// wholeCallError is the result of each message of a call that failed as a whole, and of one that was not sent. It does
// not tell whether this message failed: the next attempt makes a call for each.
type wholeCallError struct{ error }

func (e wholeCallError) Unwrap() error  { return e.error }
func (wholeCallError) Permanent() bool  { return false }
func (wholeCallError) Unfinished() bool { return true }

func isWholeCall(why error) bool {
	_, is := errors.AsType[wholeCallError](why)
	return is
}

// isTransient reports whether the result is a key's first failure and another attempt may cure it.
func isTransient(why error) bool {
	return why != nil && !errors.Is(why, errBehind) && !isPermanent(why)
}

// hasFailed reports a failure that may park its key although another attempt may cure it.
func hasFailed(why error) bool { return isTransient(why) && !isUnfinished(why) }

func classOf(why error) string {
	switch {
	case errors.Is(why, errBehind):
		return "behind"
	case isPermanent(why):
		return "permanent"
	}
	return "transient"
}

// logTaken reports each event that the publisher took. It reads headers, so it is for debugging only.
func (l *leader) logTaken(ctx context.Context, records []record, results []error) {
	if !l.cfg.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	for i := range records {
		if e := &records[i].Event; results[i] == nil {
			l.cfg.Log.Debug("event published", "event_id", e.ID, "event_type", e.Type, "correlation_id", e.CorrelationID(),
				"topic", e.Topic, "position", records[i].Position)
		}
	}
}
