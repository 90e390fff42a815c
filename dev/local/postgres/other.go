//go:build !linux

package postgres

import (
	"errors"
	"os"
	"syscall"
)

type identity struct {
	uid, gid int
	chown    bool
}

func (identity) attributes() *syscall.SysProcAttr { return nil }

func identify(Config) (identity, error) {
	if os.Geteuid() == 0 {
		return identity{}, errors.New("run as root: PostgreSQL refuses it, start as another user")
	}
	return identity{}, nil
}

// Processes cannot be listed here: any may be the server.

func childrenOf(int) []int { return nil }

func isAlive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func isHalted(int) bool { return true }

func isServer(int, string) bool { return true }
