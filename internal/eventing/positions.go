package eventing

import (
	"context"
	"errors"
	"fmt"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
)

// positions keeps how far a consumer has read in the database that it writes to.
type positions struct{ *inbox.Inbox }

var _ kafka.Positions = positions{}

// Advance implements [kafka.Positions].
func (p positions) Advance(ctx context.Context, topic string, partition int32, from, next int64) error {
	err := p.Inbox.Advance(ctx, topic, partition, from, next)
	if errors.Is(err, inbox.ErrWentBack) {
		return fmt.Errorf("%w: %w", kafka.ErrPositionLost, err)
	}
	return err
}
