//go:build unix

package web

import (
	"math"
	"syscall"
)

// Descriptors returns the process's limit of open files and connections.
func Descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024 // the limit of most systems
	}
	return int(min(limit.Cur, math.MaxInt32))
}
