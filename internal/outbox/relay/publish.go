package relay

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"example.com/twinbox/internal/failure"
)

func (l *leader) publish(ctx context.Context, page []record) (settled settlement, err error) {
	unsent := l.holdParked(page, &settled)
	began, pauses := time.Now(), failure.Backoff{Min: l.cfg.retryMin, Max: l.cfg.retryMax}
	for attempt := 1; len(unsent) > 0; attempt++ {
		n := min(l.callLimit, len(unsent))
		part, rest := unsent[:n], unsent[n:]
		if _, err := l.makeReadyFor(ctx, part); err != nil { // a look gives no row of a stored page another version
			return settled, err
		}
		part = l.holdParked(part, &settled) // the look may have parked keys
		results, failed, err := l.send(ctx, part)
		if err != nil {
			return settled, err
		}
		if failed == 0 {
			unsent, attempt, began = rest, 0, time.Now()
			continue
		}
		again := l.settle(part, results, &settled, l.mayPark(results, attempt, time.Since(began)))
		unsent = l.holdParked(append(again, rest...), &settled)
		if len(unsent) == 0 {
			break
		}
		if err := l.backOff(ctx, pauses.Next()); err != nil {
			return settled, err
		}
	}
	l.callLimit = min(2*l.callLimit, l.maxLimit)
	return settled, nil
}

// A publisher that takes no record is probably down: waiting holds up no other key. One that has taken records since
// keys were parked last works: a few attempts are enough.
func (l *leader) mayPark(results []error, attempt int, since time.Duration) bool {
	if !slices.ContainsFunc(results, hasFailed) || l.cfg.Destination.Down() {
		return false
	}
	patience := l.cfg.patience
	if !l.parkedAt.IsZero() && l.takenAt.After(l.parkedAt) {
		patience = 0
	}
	if attempt < l.cfg.attempts || since < patience {
		return false
	}
	l.parkedAt = time.Now()
	return true
}

// A session that has ended is an error: another relay may lead.
func (l *leader) backOff(ctx context.Context, pause time.Duration) error {
	if err := l.cfg.Destination.Pause(ctx, pause); err != nil {
		return err
	}
	if err := l.maintain(ctx); err != nil {
		return err
	}
	return l.ping(ctx)
}

func (l *leader) ping(ctx context.Context) error {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	return l.conn.Ping(ctx)
}

// send makes one call of the publisher. A record that must wait for a look at its partition fails without it, unless a
// pass sends it.
func (l *leader) send(ctx context.Context, records []record) (results []error, failed int, err error) {
	results = make([]error, len(records))
	var ready []record
	for i := range records {
		r := &records[i]
		if !r.resent {
			results[i] = l.ends.whyNotReady(r)
		}
		if results[i] == nil {
			ready = append(ready, *r)
		}
	}
	if len(ready) > 0 {
		if err := l.storeExpected(ctx, ready); err != nil {
			return nil, 0, err
		}
		call := l.start(ctx, ready)
		if err := l.pingUntil(ctx, call.ended, l.cfg.PublishTimeout+(l.cfg.Lease-l.cfg.PublishTimeout)/2); err != nil {
			return nil, 0, err
		}
		if slices.ContainsFunc(call.results, func(why error) bool { return why != nil && isUnfinished(why) }) {
			l.callLimit = max(len(ready)/2, 1) // the publisher takes only some of them in time
		}
		l.ends.noteAcked(ready, call)
		n := 0
		for i, why := range results {
			if why == nil {
				results[i] = call.results[n]
				n++
			}
		}
	}
	for _, why := range results {
		if why != nil {
			failed++
		}
	}
	l.note(ctx, records, results, failed)
	return results, failed, nil
}

// pingUntil keeps the session until something is done, for as long as the limit.
func (l *leader) pingUntil(ctx context.Context, done <-chan struct{}, limit time.Duration) error {
	late := time.After(limit)
	pings := time.NewTicker(l.cfg.Lease / 3)
	defer pings.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-pings.C:
			if err := l.ping(ctx); err != nil {
				return err
			}
		case <-late:
			return errPublishTimeout
		}
	}
}

func (l *leader) note(ctx context.Context, records []record, results []error, failed int) {
	if failed < len(results) {
		l.takenAt = time.Now()
		l.health.well()
		if l.cfg.Log.Enabled(ctx, slog.LevelDebug) {
			l.logTaken(records, results)
		}
	}
	if failed == 0 {
		return
	}
	first := slices.IndexFunc(results, isTransient)
	if first < 0 {
		return
	}
	if failed == len(results) {
		l.failedAt = time.Now()
	}
	why, e := results[first], &records[first].Event
	l.cfg.Destination.Report(why)
	l.health.fail(why)
	l.cfg.Log.Warn("publish failed", "events", failed, "event_id", e.ID,
		"correlation_id", e.CorrelationID(), "error", why)
}

func (l *leader) logTaken(records []record, results []error) {
	for i := range records {
		if e := &records[i].Event; results[i] == nil {
			l.cfg.Log.Debug("event published", "event_id", e.ID, "event_type", e.Type, "correlation_id", e.CorrelationID(),
				"topic", e.Topic, "position", records[i].Position)
		}
	}
}

// isTransient reports whether the result is a key's first failure and another attempt may cure it.
func isTransient(why error) bool {
	return why != nil && !errors.Is(why, errBehind) && !isPermanent(why)
}

func hasFailed(why error) bool { return isTransient(why) && !isUnfinished(why) }
