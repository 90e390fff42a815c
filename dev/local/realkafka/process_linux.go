package realkafka

import "syscall"

// childAttributes: an own process group, so that Ctrl-C in the terminal reaches us first; and a signal from the kernel
// when we die in any way.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
