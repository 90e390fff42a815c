package postgres

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Kill ends the server as a crash does: nothing is flushed, clients are not told, and the next start recovers from the
// log. Where the system can list processes, backends die with the postmaster; elsewhere they end by themselves. It
// returns when the server is gone. What the operating system had taken before is kept: this is not a power cut.
func (s *Server) Kill() error {
	backends, err := s.freeze()
	if err != nil {
		return err
	}
	// The postmaster goes last: a backend that outlives it, by a moment, tells its client "unexpected postmaster exit".
	for _, pid := range backends {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill backend: %w", err)
		}
	}
	if err := s.child.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill postgres: %w", err)
	}
	<-s.done
	// A backend is still attached to the shared memory until it is gone, and the next start would refuse that.
	return awaitGone(backends, killPatience)
}

// killPatience is the kernel's: a process that writes to a busy disk ends when that has been written.
const killPatience = 30 * time.Second

// freeze stops the postmaster where it is and lists the server's other processes. One that it gave birth to behind the
// list would outlive it: it may wait for what a killed one had locked, for ever, and no server starts beside it. There
// are none once the postmaster was waited for: its id may belong to another process by then.
func (s *Server) freeze() ([]int, error) {
	select {
	case <-s.child.done:
		return nil, nil
	default:
	}
	if err := s.child.signal(syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("stop postgres: %w", err)
	}
	postmaster := s.child.cmd.Process.Pid
	if err := await(func() bool { return halted(postmaster) }, killPatience); err != nil {
		return nil, fmt.Errorf("stop postgres: process %d still runs %w", postmaster, err)
	}
	return childrenOf(postmaster), nil
}

func awaitGone(pids []int, limit time.Duration) error {
	for _, pid := range pids {
		if err := await(func() bool { return !alive(pid) }, limit); err != nil {
			return fmt.Errorf("kill postgres: process %d is still there %w", pid, err)
		}
	}
	return nil
}

// await returns an error that says how long it has waited in vain.
func await(done func() bool, limit time.Duration) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	deadline := time.After(limit)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			return fmt.Errorf("after %s", limit)
		}
	}
	return nil
}
