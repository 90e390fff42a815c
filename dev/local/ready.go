package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/twinbox/internal/service"
)

const (
	readyPoll    = 20 * time.Millisecond
	readyTimeout = 30 * time.Second
)

// awaitReady asks all services until they say that they are ready: from then on a sign-up comes out as a mail.
func (h *stack) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	timeout := time.After(readyTimeout)
	for {
		var report bytes.Buffer
		var err error
		for _, listen := range h.at.Services {
			err = errors.Join(err, service.Healthcheck(ctx, listen.Admin, &report))
		}
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-h.ended:
			return errPartEnded
		case <-timeout:
			return fmt.Errorf("await readiness: still not ready after %s: %w\n%s", readyTimeout, err, report.String())
		}
	}
}
