//go:build !linux

package postgres

import "syscall"

// childrenOf knows no way to list processes: backends end by themselves when they notice the postmaster's end.
func childrenOf(int) []int { return nil }

// halted cannot be seen here, and without a list it does not matter.
func halted(int) bool { return true }

// serves cannot be seen here: every process may be the server.
func serves(int, string) bool { return true }

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
