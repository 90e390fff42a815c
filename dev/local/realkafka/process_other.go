//go:build !linux

package realkafka

import "syscall"

// childAttributes: nothing that every system has. A child outlives a killed parent here.
func childAttributes() *syscall.SysProcAttr { return nil }
