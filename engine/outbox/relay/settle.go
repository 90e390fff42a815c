package relay

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/outbox/window"
)

// settle waits for a flight, sends again what failed, and sets aside keys that keep others waiting. After it every
// record of the page is taken or held.
func (l *leader) settle(ctx context.Context, f *flight, out *outcome) error {
	began := time.Now()
	pauses := failure.Backoff{Min: l.cfg.RetryMin, Max: l.cfg.RetryMax}
	for attempt := 1; f != nil; attempt++ {
		if err := f.wait(); err != nil {
			return err
		}
		failed := l.sender.collect(f)
		taken := len(failed) < len(f.records)
		l.logTaken(f)
		if taken {
			l.patience.takenAt = time.Now()
			l.health.markWell(stateLeading)
		}
		if failed = l.setAside(failed, attempt, false, out); len(failed) == 0 {
			return nil
		}
		l.noteFailure(failed[0].err, taken)
		l.cfg.Destination.Report(failed[0].err)
		if !l.cfg.Destination.Down() && l.patience.isOver(attempt, time.Since(began), taken) {
			l.patience.parkedAt = time.Now()
			l.setAside(failed, attempt, true, out)
			return nil
		}
		l.logFailed(failed, attempt)
		if err := l.backOff(ctx, pauses.Next()); err != nil {
			return err
		}
		f = l.sender.launch(ctx, recordsOf(failed))
	}
	return nil
}

// logTaken says what the broker took. It reads headers only when the lines are written.
func (l *leader) logTaken(f *flight) {
	if !l.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	for i := range f.records {
		if e := &f.records[i].Event; f.results[i] == nil {
			l.log.Debug("event published", "event_id", e.ID, "event_type", e.Type, "correlation_id", e.CorrelationID(),
				"topic", e.Topic, "position", f.records[i].Position)
		}
	}
}

func (l *leader) logFailed(failed []failedRecord, attempt int) {
	first := &failed[0].Event
	l.log.Warn("publish failed", "events", len(failed), "attempt", attempt, "event_id", first.ID,
		"correlation_id", first.CorrelationID(), "error", failed[0].err)
}

// noteFailure keeps why not everything was taken.
func (l *leader) noteFailure(err error, taken bool) {
	l.health.markFailed(err)
	if !taken {
		l.patience.failedAt = time.Now()
	}
}

// stuck reports whether something waits and the last that was heard of the broker is that it takes nothing. That no
// window is open then does not mean that all is well: keys that were set aside leave none open.
func (l *leader) stuck() bool {
	return l.parked.hasAny() && l.patience.failedAt.After(l.patience.takenAt)
}

// backOff waits before a failed record is sent again, and keeps the lease meanwhile.
func (l *leader) backOff(ctx context.Context, pause time.Duration) error {
	if err := l.cfg.Destination.Pause(ctx, pause); err != nil {
		return err
	}
	if err := l.keepUp(ctx); err != nil {
		return err
	}
	return l.session.secureLease(ctx)
}

// setAside parks the keys of records that will never be taken, or of all, to be tried again later. It returns the
// failures of keys that are not parked.
func (l *leader) setAside(failed []failedRecord, attempt int, all bool, out *outcome) []failedRecord {
	for _, x := range failed {
		if isPermanent(x.err) || all && !l.parked.has(x.Key()) {
			l.park(x, attempt, out)
		}
	}
	return slices.DeleteFunc(failed, func(x failedRecord) bool {
		if !l.parked.has(x.Key()) {
			return false
		}
		out.held = append(out.held, x.Record)
		return true
	})
}

// park sets a failure's key aside: at once, so that nothing of it is sent any more, and with the outcome in the
// database.
func (l *leader) park(x failedRecord, attempts int, out *outcome) {
	if slices.ContainsFunc(out.parked, func(p parking) bool { return p.key == x.Key() }) {
		return // its first failure is the reason
	}
	out.parked = append(out.parked, l.parked.park(x, attempts))
	if isPermanent(x.err) {
		l.patience.failedAt = time.Time{} // that is an answer: the broker works
	}
	l.metrics.parkings.Inc()
}

// patience decides between waiting for the broker and setting keys aside.
type patience struct {
	attempts int           // [Config.Attempts]
	limit    time.Duration // [Config.Patience]

	takenAt  time.Time // a record was taken
	failedAt time.Time // a call failed, and not for good, of which no record was taken
	parkedAt time.Time // a key was set aside
}

// isOver: if others were taken, or have been since the last key was set aside, the broker works and only some keys
// fail. A few attempts are enough then, or a single one of a publisher that tries for long itself. Otherwise every new
// key of a partition that is down would hold up all others. If nothing is taken, waiting holds up no other key, for a
// while.
func (p *patience) isOver(attempt int, since time.Duration, taken bool) bool {
	works := taken || p.takenAt.After(p.parkedAt) && !p.parkedAt.IsZero()
	if works {
		return attempt >= p.attempts || since >= p.limit/10
	}
	return attempt >= p.attempts && since >= p.limit
}

// failedRecord is a record that was not taken, or only behind one that was not.
type failedRecord struct {
	window.Record
	err error
}

func recordsOf(failures []failedRecord) []window.Record {
	records := make([]window.Record, len(failures))
	for i := range failures {
		records[i] = failures[i].Record
	}
	return records
}
