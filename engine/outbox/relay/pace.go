package relay

import (
	"context"
	"time"
)

// roundPace keeps rounds apart while commits keep coming: what is committed meanwhile shares the next one's statements.
// The first event after a rest is published at once, and so is what was committed during its round.
type roundPace struct {
	every time.Duration                             // [Config.RoundEvery]
	sleep func(context.Context, time.Duration) bool // until then
	began time.Time
	// steady says that there was something to publish as soon as the last round was through.
	steady bool
}

func (p *roundPace) begin() { p.began = time.Now() }

// goesOn says, when a round is through, that there is something to publish, and it is time. A commit that is told of
// here is found by the round that follows.
func (p *roundPace) goesOn(ctx context.Context, wake <-chan struct{}) bool {
	if left := p.every - time.Since(p.began); p.steady && left > 0 {
		p.sleep(ctx, left)
	}
	select {
	case <-wake:
		p.steady = true
	default:
		p.steady = false
	}
	return p.steady
}
