package relay

import (
	"context"
	"fmt"
	"sync/atomic"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/engine/outbox/restore"
)

// restoreCheck asks the broker, when a relay begins to lead, for events that the database has forgotten.
type restoreCheck struct {
	cfg     Config
	session *session
	found   *atomic.Pointer[outbox.CheckError] // what [Relay.Restored] says
}

// check refuses a restore, with a [*outbox.CheckError], that is not confirmed.
func (c *restoreCheck) check(ctx context.Context) error {
	found, err := c.find(ctx)
	if err != nil {
		return err
	}
	var e outbox.CheckError
	e.RefuseIf(found != "", restore.CodeRestored, found)
	if found == "" {
		c.found.Store(nil)
	} else {
		c.found.Store(&e)
	}
	return e.Err()
}

// find says what is wrong; empty: nothing.
func (c *restoreCheck) find(ctx context.Context) (found string, err error) {
	var at restore.Standing
	err = c.session.do(ctx, func(ctx context.Context) (err error) {
		at, err = restore.ReadStanding(ctx, c.session.conn)
		return err
	})
	if err != nil || at.Restored != "" || at.Compared || c.cfg.Published == nil {
		return at.Restored, err
	}
	var events []cloudevent.Event
	if !at.New {
		// The broker first: what it holds by then the database knew before.
		ask, cancel := context.WithTimeout(ctx, c.cfg.Lease/2)
		defer cancel()
		if events, err = c.cfg.Published(ask); err != nil {
			return "", fmt.Errorf("compare with the broker: %w", err)
		}
	}
	return found, c.session.do(ctx, func(ctx context.Context) (err error) {
		found, err = restore.Compare(ctx, c.session.conn, events, c.session.term.epoch)
		return err
	})
}
