package retention

import (
	"context"
	"errors"
	"fmt"
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
		limit := r.Retention - r.Slack
		if err != nil {
			err = fmt.Errorf("read retention of %s: %w", topic, err)
		} else if kept < 0 || kept >= limit {
			err = &Violation{fmt.Sprintf("an event of the topic %s could come again after the inbox has forgotten it: set "+
				"the topic's cleanup.policy to delete and its retention.ms below %d (%s)", topic, limit.Milliseconds(), limit)}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
