package postgres

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"example.com/twinbox/internal/failure"
)

// Kill ends the server as a crash does and returns when it is gone: clients get no message, and the next start recovers
// from the log. On Linux backends die with the postmaster; elsewhere later. The operating system keeps accepted writes.
// It keeps shared memory, too, and Kill removes that: a start from a backup would not find it.
func (s *Server) Kill() error {
	select {
	case <-s.process.Done(): // its id and its folder may belong to others
		<-s.done
		return nil
	default:
	}
	backends, err := s.freeze()
	if err != nil {
		return err
	}
	// The postmaster dies last: a backend that outlives it sends its client "unexpected postmaster exit".
	for _, pid := range backends {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill backend: %w", err)
		}
	}
	if err := s.process.Kill(); err != nil {
		return fmt.Errorf("kill postgres: %w", err)
	}
	<-s.done
	// The next start refuses the shared memory that a backend is still attached to.
	for _, pid := range backends {
		if err := await(func() bool { return !isAlive(pid) }); err != nil {
			return fmt.Errorf("kill postgres: process %d is still there: %w", pid, err)
		}
	}
	return removeSharedMemory(s.cfg.Dir)
}

// removeSharedMemory leaves memory that a backend is attached to: it keeps the next start from the data directory.
func removeSharedMemory(dir string) error {
	id, is := readSharedMemory(dir)
	if !is {
		return nil
	}
	var memory unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &memory); err != nil || memory.Nattch > 0 {
		return nil // it is gone or in use
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil {
		return fmt.Errorf("remove shared memory: %w", err)
	}
	return nil
}

// freeze stops the postmaster and lists the other processes. A backend forked after the list would outlive it and
// prevent the next start.
func (s *Server) freeze() ([]int, error) {
	postmaster := s.process.PID()
	if err := s.process.Signal(syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("stop postgres: %w", err)
	}
	if err := await(func() bool { return isHalted(postmaster) }); err != nil {
		return nil, fmt.Errorf("stop postgres: process %d still runs: %w", postmaster, err)
	}
	return childrenOf(postmaster), nil
}

// killPatience covers a write to a busy disk, which the kernel ends first.
const killPatience = 30 * time.Second

func await(isDone func() bool) error {
	ctx, cancel := timeout(context.Background(), "the kernel", killPatience)
	defer cancel()
	for !isDone() {
		if err := failure.Sleep(ctx, readyPoll); err != nil {
			return err
		}
	}
	return nil
}
