package postgres

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

type identity struct {
	uid, gid  int  // owner of the files
	chown     bool // root gives new folders to the account, and starts the programs as it
	namespace bool // root maps itself to another user in a user namespace: the files stay root's
}

// disguise is the uid and gid that root has inside the user namespace.
const disguise = 65534

func (id identity) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{}
	switch {
	case id.namespace:
		attr.Cloneflags = syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: disguise, HostID: 0, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: disguise, HostID: 0, Size: 1}}
	case id.chown:
		attr.Credential = &syscall.Credential{Uid: uint32(id.uid), Gid: uint32(id.gid)}
	}
	return attr
}

// identify keeps the owner of an existing data directory, who alone can read the files.
func identify(cfg Config) (identity, error) {
	self := identity{uid: os.Geteuid(), gid: os.Getegid()}
	info, err := os.Stat(cfg.Dir)
	switch {
	case errors.Is(err, os.ErrNotExist) && self.uid != 0:
		return self, nil
	case errors.Is(err, os.ErrNotExist) && !cfg.Account && isNamespaceAllowed():
		return identity{namespace: true}, nil
	case errors.Is(err, os.ErrNotExist):
		return findAccount()
	case err != nil:
		return identity{}, fmt.Errorf("look at data directory: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return identity{}, errors.New("look at data directory: no owner")
	case self.uid != 0 && int(owner.Uid) != self.uid:
		return identity{}, fmt.Errorf("data directory belongs to another user: uid %d, this process is uid %d",
			owner.Uid, self.uid)
	case self.uid != 0:
		return self, nil
	case owner.Uid == 0:
		return identity{namespace: true}, nil
	}
	return identity{uid: int(owner.Uid), gid: int(owner.Gid), chown: true}, nil
}

func findAccount() (identity, error) {
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.Atoi(account.Uid)
		gid, errGID := strconv.Atoi(account.Gid)
		if errUID == nil && errGID == nil && uid != 0 {
			return identity{uid: uid, gid: gid, chown: true}, nil
		}
	}
	return identity{}, errors.New(`run as root: user namespaces are denied and there is no account "postgres" or "nobody"`)
}

// Containers without CAP_SYS_ADMIN deny a user namespace.
func isNamespaceAllowed() bool {
	program, _, err := start("/bin/true", nil, identity{namespace: true}, syscall.SIGKILL, io.Discard)
	if err != nil {
		return !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EINVAL)
	}
	<-program.Done()
	return program.Err() == nil
}
