//go:build unix

package web

import (
	"math"
	"syscall"
)

// Descriptors returns how many files and connections this process may have open.
func Descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024 // most systems allow that many
	}
	return int(min(limit.Cur, math.MaxInt32))
}
