package postgres

import "syscall"

// identity is how the server's processes are started: as whom, and what happens to them when this process dies.
type identity struct {
	uid, gid  int  // the account the files belong to, seen from here
	chown     bool // files made here must be given to uid, gid
	namespace bool // root in disguise
}

// attributes gives the process attributes. deathSignal is sent to the child when this process dies, where the system
// can do so. The own process group keeps a terminal's Ctrl-C away from the child: its stop is this program's to order.
func (id identity) attributes(deathSignal syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	id.apply(attr, deathSignal)
	return attr
}
