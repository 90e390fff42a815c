//go:build !linux

package postgres

import (
	"errors"
	"os"
	"syscall"
)

// apply has nothing to add: there is no parent-death signal here. A program that is killed leaves the server running,
// and the next start on the same directory says so.
func (identity) apply(*syscall.SysProcAttr, syscall.Signal) {}

func identify(_ string, _ Identity) (identity, error) {
	if os.Geteuid() == 0 {
		return identity{}, errors.New("run as root: PostgreSQL refuses it, start as another user")
	}
	return identity{uid: os.Geteuid(), gid: os.Getegid()}, nil
}
