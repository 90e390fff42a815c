package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/domain"
)

const (
	// pathClients is how many signups may be under way: more than a service has connections, as with an HTTP server.
	pathClients = 64
	// drainLimit is how long what was signed up may take to arrive when the load has ended. Only then can be counted.
	drainLimit = time.Minute
)

var errOverdue = errors.New("fell behind")

// openLine is a line that runs, and all that has gone through it.
type openLine struct {
	line
	arrivals *arrivals
	signed   int // signups that were answered, and the next one's number
}

// passage is one open-loop run over a line: signups that are due at times fixed before.
type passage struct {
	due       []time.Duration // since began
	began     time.Time
	users     []domain.UserID // in the order of due
	committed []time.Time
	end       time.Time // of the schedule
	bound     time.Duration
	cut       bool    // it was too late too often and stopped
	serverCPU float64 // seconds that PostgreSQL used
}

// pass makes each signup when it is due, or as soon after as one of the clients is free, and returns when all have
// arrived at the other end. When more than one in a hundred is later than bound it makes no more, and waits for those
// that it made: nothing may be missing.
func (l *openLine) pass(ctx context.Context, due []time.Duration, bound time.Duration) (*passage, error) {
	p := &passage{
		due: due, began: time.Now(), users: make([]domain.UserID, len(due)), committed: make([]time.Time, len(due)),
		bound: bound,
	}
	if len(due) > 0 {
		p.end = p.began.Add(due[len(due)-1])
	}
	first, before := l.signed, l.arrivals.count()
	var next atomic.Int64
	loadCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	group, groupCtx := errgroup.WithContext(loadCtx)
	for range pathClients {
		group.Go(func() error {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(due) {
					return nil
				}
				if err := sleepUntil(groupCtx, p.began.Add(due[n])); err != nil {
					return err
				}
				if err := p.one(ctx, l, first, n); err != nil {
					return fmt.Errorf("signup %d: %w", first+n, err)
				}
			}
		})
	}
	go p.watch(loadCtx, l, before, stop)
	err := group.Wait()
	if p.cut = errors.Is(err, errOverdue); err != nil && !p.cut {
		return p, err
	}
	l.signed += len(due)
	return p, l.drain(ctx, before+p.made())
}

func (p *passage) one(ctx context.Context, l *openLine, first, n int) error {
	who, err := newPerson(first + n)
	if err != nil {
		return err
	}
	if p.users[n], err = l.signUp(ctx, who); err != nil {
		return err
	}
	p.committed[n] = time.Now()
	return nil
}

// watch stops the load when it is certain that 99 in a hundred are not there in time.
func (p *passage) watch(ctx context.Context, l *openLine, before int, stop context.CancelCauseFunc) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		inTime := time.Since(p.began) - p.bound
		wanted := sort.Search(len(p.due), func(i int) bool { return p.due[i] > inTime })
		if missing := wanted - (l.arrivals.count() - before); missing > len(p.due)/100 {
			stop(errOverdue)
			return
		}
	}
}

// made is how many signups were answered.
func (p *passage) made() int {
	n := 0
	for _, user := range p.users {
		if user != "" {
			n++
		}
	}
	return n
}

// drain waits until n signups have arrived.
func (l *openLine) drain(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, drainLimit, fmt.Errorf("nothing came for %s", drainLimit))
	defer cancel()
	return l.arrivals.await(ctx, n)
}

// latencies are how long after its commit's return, and after the moment it was due, each signup was committed at the
// other end; in the order in which they were due. The consumer may be faster than the commit's answer: that is zero.
func (p *passage) latencies(a *arrivals) (fromCommit, fromDue []time.Duration) {
	for n, user := range p.users {
		if at, arrived := a.of(user); arrived {
			fromCommit = append(fromCommit, max(at.Sub(p.committed[n]), 0))
			fromDue = append(fromDue, at.Sub(p.began.Add(p.due[n])))
		}
	}
	return fromCommit, fromDue
}

// rate is how many arrived per second, from the first that was due to the last that came.
func (p *passage) rate(a *arrivals, length time.Duration) float64 {
	last, count := p.began.Add(length), 0
	for _, user := range p.users {
		if at, arrived := a.of(user); arrived {
			count++
			if at.After(last) {
				last = at
			}
		}
	}
	return float64(count) / last.Sub(p.began).Seconds()
}

// atTheEnd is how long after the last one was due all must have arrived.
const atTheEnd = 2 * time.Second

// verdict says whether the line held the rate: 99 in a hundred were there in time, all were soon after the end, and
// those of the end were not later than those before, which a queue that grows would make them.
func (p *passage) verdict(a *arrivals) (held bool, why string) {
	if p.cut {
		return false, fmt.Sprintf("over 1%% later than %s", p.bound)
	}
	if len(p.due) == 0 {
		return true, "nothing was due"
	}
	for _, user := range p.users {
		if at, _ := a.of(user); at.Sub(p.end) > atTheEnd {
			return false, fmt.Sprintf("not all there %s after the end", atTheEnd)
		}
	}
	_, fromDue := p.latencies(a)
	tail := fromDue[len(fromDue)*4/5:]
	mean := time.Duration(0)
	for _, d := range tail {
		mean += d / time.Duration(len(tail))
	}
	if mean > p.bound/2 {
		return false, fmt.Sprintf("the last fifth took %s on average", mean.Round(time.Millisecond))
	}
	slices.Sort(fromDue)
	p99 := percentile(fromDue, 99)
	return p99 <= p.bound, fmt.Sprintf("p99 %s", p99.Round(time.Millisecond))
}
