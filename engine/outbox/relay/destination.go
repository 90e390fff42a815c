package relay

import (
	"context"
	"time"
)

// Destination is what is known about the server that the publisher sends to, see [Config].
type Destination interface {
	// Report says that sending failed. It does not block.
	Report(err error)
	// Down is true while the server is known to be down.
	Down() bool
	// Pause waits for d, or less: until the server is back. It returns an error only when ctx has ended.
	Pause(ctx context.Context, d time.Duration) error
}

// noDestination knows nothing.
type noDestination struct{}

func (noDestination) Report(error) {}
func (noDestination) Down() bool   { return false }

func (noDestination) Pause(ctx context.Context, d time.Duration) error {
	if !sleep(ctx, d) {
		return ctx.Err()
	}
	return nil
}
