package retention

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Requirements are the settings outside the inbox that its promise rests on.
type Requirements struct {
	// Retention is how long the inbox remembers; see [Config].
	Retention time.Duration
	// Topics are the topics consumed, and TopicRetention asks the broker how long one keeps records: its own setting,
	// not the one it was created with. Negative means for ever.
	Topics         []string
	TopicRetention func(ctx context.Context, topic string) (time.Duration, error)
	// Slack is how long beyond its topic's retention an event may still come: retries and parking, the replay window,
	// and the broker's own delay in deleting what has expired (segment.ms).
	Slack time.Duration
	// HandlerTimeout must be shorter than RebalanceTimeout: a rebalance does not wait longer than that.
	HandlerTimeout, RebalanceTimeout time.Duration
	// Groups are the consumer groups, whose names must carry Environment.
	Groups      []string
	Environment string
	// FromOldest says that a group without committed offsets starts at the oldest record.
	FromOldest bool
}

// Stable codes of a [Violation].
const (
	CheckRetention = "retention_too_short"
	CheckTimeout   = "handler_timeout_too_long"
	CheckGroup     = "group_without_environment"
	CheckOffset    = "offset_not_oldest"
)

// A Violation is one requirement that does not hold. Asking again does not change it.
type Violation struct{ Code, Detail string }

func (v *Violation) Error() string { return "inbox requirement " + v.Code + ": " + v.Detail }

// Check finds every requirement that does not hold. It joins a [*Violation] for each, and the error of a broker that
// did not tell how long a topic keeps its records: asking again may.
func (r Requirements) Check(ctx context.Context) error {
	var errs []error
	demand := func(holds bool, code, format string, args ...any) {
		if !holds {
			errs = append(errs, &Violation{code, fmt.Sprintf(format, args...)})
		}
	}
	demand(r.FromOldest, CheckOffset, "a new group would miss the records that are there already")
	demand(r.HandlerTimeout < r.RebalanceTimeout, CheckTimeout,
		"a handler may run %s, a rebalance waits %s", r.HandlerTimeout, r.RebalanceTimeout)
	for _, group := range r.Groups {
		demand(r.Environment != "" && contains(group, r.Environment), CheckGroup,
			"%q does not name the environment %q: two environments would share its work", group, r.Environment)
	}
	reach, unlimited, err := r.reach(ctx)
	demand(err != nil || unlimited != "" || r.Retention > reach, CheckRetention,
		"the inbox forgets after %s, an event may come again after %s", r.Retention, reach)
	demand(unlimited == "", CheckRetention, "the topic %s keeps its records without a time limit, so an event could "+
		"come again after the inbox has forgotten it: set the topic's cleanup.policy to delete and its retention.ms "+
		"below %d (%s)", unlimited, (r.Retention - r.Slack).Milliseconds(), r.Retention-r.Slack)
	return errors.Join(append(errs, err)...)
}

// contains looks for the environment as a whole part of the group's name, so that "prod" is not found in "reproduce".
func contains(group, environment string) bool {
	dots := strings.NewReplacer("_", ".", "-", ".")
	return strings.Contains("."+dots.Replace(group)+".", "."+dots.Replace(environment)+".")
}

const forever = time.Duration(1<<63 - 1)

// Redelivery is how far back an event of the topics may be delivered again; it is made for [Config].
func (r Requirements) Redelivery(ctx context.Context) (time.Duration, error) {
	reach, _, err := r.reach(ctx)
	return reach, err
}

// reach also returns the first topic that keeps its records without a limit.
func (r Requirements) reach(ctx context.Context) (reach time.Duration, unlimited string, err error) {
	var errs []error
	for _, topic := range r.Topics {
		kept, err := r.TopicRetention(ctx, topic)
		if err != nil {
			errs = append(errs, fmt.Errorf("read retention of %s: %w", topic, err))
		}
		if kept < 0 || kept > forever-r.Slack {
			return forever, topic, errors.Join(errs...)
		}
		reach = max(reach, kept+r.Slack)
	}
	return reach, "", errors.Join(errs...)
}
