package outbox

import (
	"context"
	"slices"
	"time"
)

// settle waits for a flight, sends again what failed, and sets aside keys that keep others waiting. After it every
// record of the page is taken or held.
func (l *leader) settle(ctx context.Context, f *flight, out *outcome) error {
	began := time.Now()
	for attempt := 1; f != nil; attempt++ {
		if err := f.wait(); err != nil {
			return err
		}
		again := l.collect(f)
		taken := len(again) < len(f.records)
		if taken {
			l.takenLast = time.Now()
			l.health.well(stateLeading)
		}
		again = l.parkRefused(again, attempt, out)
		if len(again) == 0 {
			return nil
		}
		l.failed(again[0].err, taken)
		l.cfg.Destination.Report(again[0].err)
		if !l.cfg.Destination.Down() && l.lostPatience(attempt, time.Since(began), taken) {
			l.parkFailing(again, attempt, out)
			return nil
		}
		if err := l.backOff(ctx, attempt, again); err != nil {
			return err
		}
		f = l.sender.launch(ctx, recordsOf(again))
	}
	return nil
}

// failed remembers why not everything was taken.
func (l *leader) failed(err error, taken bool) {
	l.health.failed(err)
	if !taken {
		l.failedLast = time.Now()
	}
}

// stuck reports whether something waits and the last that was heard of the broker is that it takes nothing. That no
// window is open then does not mean that all is well: keys that were set aside leave none open.
func (l *leader) stuck() bool { return len(l.parked) > 0 && l.failedLast.After(l.takenLast) }

// lostPatience decides between waiting and setting keys aside. If others were taken, or have been since the last key
// was set aside, the broker works and only some keys fail: a few attempts are enough, or a single one of a publisher
// that tries for long itself. Otherwise every new key of a partition that is down would hold up all others. If nothing
// is taken, nobody is held up by waiting, for a while.
func (l *leader) lostPatience(attempt int, since time.Duration, taken bool) bool {
	works := taken || l.takenLast.After(l.parkedLast) && !l.parkedLast.IsZero()
	if works {
		return attempt >= l.cfg.Attempts || since >= l.cfg.Patience/10
	}
	return attempt >= l.cfg.Attempts && since >= l.cfg.Patience
}

// backOff waits before a failed record is sent again, and keeps the lease meanwhile.
func (l *leader) backOff(ctx context.Context, attempt int, again []failure) error {
	pause := l.cfg.RetryMax
	if attempt < 20 {
		pause = min(l.cfg.RetryMin<<(attempt-1), l.cfg.RetryMax)
	}
	l.log.Warn("publish failed", "events", len(again), "attempt", attempt, "error", again[0].err)
	if err := l.cfg.Destination.Pause(ctx, jitter(pause)); err != nil {
		return err
	}
	if err := l.tend(ctx); err != nil {
		return err
	}
	return l.secure(ctx)
}

// failure is a record that was not taken, or only behind one that was not.
type failure struct {
	record
	err error
}

func recordsOf(failures []failure) []record {
	records := make([]record, len(failures))
	for i := range failures {
		records[i] = failures[i].record
	}
	return records
}

// collect sorts the results of a flight that has landed: what was taken is remembered, what was not is returned.
func (r *Relay) collect(f *flight) []failure {
	if f == nil || f.wait() != nil {
		return nil
	}
	var again []failure
	for i, err := range f.results {
		if err != nil {
			again = append(again, failure{f.records[i], err})
		} else {
			r.recent.add(&f.records[i])
		}
	}
	return again
}

// parkRefused parks the keys of records that will never be taken and returns the failures of other keys.
func (l *leader) parkRefused(again []failure, attempt int, out *outcome) []failure {
	if !slices.ContainsFunc(again, func(x failure) bool { return isPermanent(x.err) }) {
		return again
	}
	for _, x := range again {
		if isPermanent(x.err) {
			l.park(x, true, attempt, out)
		}
	}
	return slices.DeleteFunc(again, func(x failure) bool {
		if l.parked.has(x.name()) {
			out.held = append(out.held, x.record)
			return true
		}
		return false
	})
}

// parkFailing sets the keys of the failures aside, to be tried again later.
func (l *leader) parkFailing(again []failure, attempt int, out *outcome) {
	l.parkedLast = time.Now()
	for _, x := range again {
		if !l.parked.has(x.name()) {
			l.park(x, false, attempt, out)
		}
		out.held = append(out.held, x.record)
	}
}
