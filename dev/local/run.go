package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/twinbox/internal/service"
)

const drainTimeout = time.Minute

// Run starts the stack, shows the summary and runs until ctx is cancelled or a part fails. It stops services first and
// PostgreSQL last, and leaves no process.
//
// Before the start it refuses a folder in use, and names every port in use and every problem with addresses and
// settings. On Linux a process that dies leaves no PostgreSQL. The next Run recovers.
func Run(ctx context.Context, cfg Config) (err error) {
	began := time.Now()
	cfg = cfg.withDefaults()
	if err := errors.Join(checkAddresses(cfg.listeners()), checkSettings(cfg)); err != nil {
		return err
	}
	f, err := openFolder(cfg.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.lock.Unlock()) }()
	if err := checkPorts(ctx, cfg.listeners()); err != nil {
		return err
	}
	logs := &logs{folder: f, screen: &screen{out: cfg.Err, verbose: cfg.Verbose}}
	defer func() { err = errors.Join(err, logs.close()) }()
	file, err := logs.open("stack")
	if err != nil {
		return err
	}
	log := service.NewLogger(file, "info", "json") // not on the screen: Run returns the failures that it logs
	h, err := newStack(ctx, cfg, f, logs, log)
	if err != nil {
		return err
	}
	defer h.announceStop(ctx)()
	err = h.start()
	switch {
	case h.group.Context().Err() != nil: // the group has the reason and stops
	case err != nil:
		h.group.Go("start", func(context.Context) error { return err })
	default:
		log.InfoContext(ctx, "ready", "took", time.Since(began))
		h.writeSummary(time.Since(began))
		if cfg.Faults != nil { // the files have the errors, which are wanted
			logs.screen.silence()
		}
		cfg.Ready(h.at)
	}
	return h.group.Wait()
}

func (h *stack) announceStop(ctx context.Context) (stopped func()) {
	announced := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(announced)
		_, _ = fmt.Fprintln(h.logs.screen, "\nStopping the services, then Kafka and PostgreSQL. A second Ctrl-C stops now.")
	})
	return func() {
		if !unwatch() {
			<-announced
			_, _ = fmt.Fprintln(h.logs.screen, "Stopped. The data is in "+h.cfg.Dir+".")
		}
	}
}
