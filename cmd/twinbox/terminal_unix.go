//go:build linux || darwin

package main

import (
	"os"
	"syscall"
	"unsafe"
)

// columns asks the terminal how wide it is; no terminal, no answer. One of a job answers 0.
func columns(file *os.File) (width int, isTerminal bool) {
	var size struct{ rows, columns, _, _ uint16 } // struct winsize
	_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return int(size.columns), failed == 0
}
