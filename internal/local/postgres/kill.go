package postgres

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Kill ends the server as a crash does: nothing is flushed, nobody is told, and the next start recovers from the
// log. Where the system can list processes, backends die with the postmaster; elsewhere they end by themselves. It
// returns when the server is gone. What the operating system had taken before is kept: this is not a power cut.
func (s *Server) Kill() error {
	backends := s.children()
	if err := s.child.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill postgres: %w", err)
	}
	for _, pid := range backends {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill backend: %w", err)
		}
	}
	<-s.done
	// A backend is still attached to the shared memory until it is gone, and the next start would refuse that.
	return awaitGone(backends, 5*time.Second)
}

// children lists the server's processes below the postmaster. None once the postmaster was waited for: its id may
// belong to somebody else by then.
func (s *Server) children() []int {
	select {
	case <-s.child.done:
		return nil
	default:
		return childrenOf(s.child.cmd.Process.Pid)
	}
}

func awaitGone(pids []int, limit time.Duration) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	deadline := time.After(limit)
	for len(pids) > 0 {
		if !alive(pids[0]) {
			pids = pids[1:]
			continue
		}
		select {
		case <-tick.C:
		case <-deadline:
			return fmt.Errorf("kill postgres: process %d is still there after %s", pids[0], limit)
		}
	}
	return nil
}
