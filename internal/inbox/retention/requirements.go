package retention

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Requirements are the topic settings that the inbox depends on.
type Requirements struct {
	// Retention is how long the inbox remembers; see [Config].
	Retention time.Duration
	// Slack is how long after its topic's retention an event may still come: retries, parking, replays, segment.ms.
	Slack time.Duration
	// TopicRetention returns a topic's retention; negative is unlimited.
	Topics         []string
	TopicRetention func(ctx context.Context, topic string) (time.Duration, error)
}

// A Violation is a topic that can deliver a forgotten event again. It is permanent.
type Violation struct{ Detail string }

func (v *Violation) Error() string { return "inbox requirement retention_too_short: " + v.Detail }

// Check returns a [*Violation] for each topic that can deliver an event for as long as the inbox remembers it or
// longer. It joins the broker's errors, after which another call may succeed.
func (r Requirements) Check(ctx context.Context) error {
	var errs []error
	for _, topic := range r.Topics {
		kept, err := r.TopicRetention(ctx, topic)
		switch {
		case err != nil:
			err = fmt.Errorf("read retention of %s: %w", topic, err)
		case kept < 0 || kept > math.MaxInt64-r.Slack:
			longest := r.Retention - r.Slack
			err = &Violation{fmt.Sprintf("the topic %s keeps its records without a time limit, so an event could come "+
				"again after the inbox has forgotten it: set the topic's cleanup.policy to delete and its retention.ms "+
				"below %d (%s)", topic, longest.Milliseconds(), longest)}
		case kept+r.Slack >= r.Retention:
			err = &Violation{fmt.Sprintf("the inbox forgets after %s, an event of %s may come again after %s",
				r.Retention, topic, kept+r.Slack)}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
