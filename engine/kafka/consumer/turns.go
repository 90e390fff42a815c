package consumer

import (
	"sync"
	"time"
)

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

func newTurns(parallel int, limit time.Duration) *turns {
	return &turns{free: make(chan struct{}, parallel), limit: limit}
}

// take waits for a turn. It returns nil when done is closed first, else how to give the turn back.
func (t *turns) take(done <-chan struct{}) (giveBack func()) {
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

func isClosed(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	default:
		return false
	}
}
