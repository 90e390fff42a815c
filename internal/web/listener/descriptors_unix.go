//go:build unix

package listener

import (
	"math"
	"syscall"
)

// Descriptors is how many files and connections this process may have open.
func Descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return assumed
	}
	return int(min(limit.Cur, math.MaxInt32))
}

// assumed is what most systems allow at least.
const assumed = 1024
