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

// disguise is the uid and gid that root has inside the user namespace.
const disguise = 65534

func (id identity) apply(attr *syscall.SysProcAttr, deathSignal syscall.Signal) {
	attr.Pdeathsig = deathSignal
	switch {
	case id.namespace:
		attr.Cloneflags = syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: disguise, HostID: 0, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: disguise, HostID: 0, Size: 1}}
	case id.chown:
		attr.Credential = &syscall.Credential{Uid: uint32(id.uid), Gid: uint32(id.gid)}
	}
}

// identify decides as whom the server runs on dir. A directory that exists decides by its owner: entering it in the
// other way would leave files that the next start cannot read.
func identify(dir string, wish Identity) (identity, error) {
	self := identity{uid: os.Geteuid(), gid: os.Getegid()}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if self.uid != 0 {
			return self, nil
		}
		return newRootIdentity(wish)
	case err != nil:
		return identity{}, fmt.Errorf("look at data directory: %w", err)
	}

	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, errors.New("look at data directory: no owner")
	}
	switch {
	case self.uid != 0 && int(owner.Uid) != self.uid:
		return identity{}, fmt.Errorf("%w: uid %d, this process is uid %d", ErrOwner, owner.Uid, self.uid)
	case self.uid != 0:
		return self, nil
	case owner.Uid == 0 && wish == Account, owner.Uid != 0 && wish == Namespace:
		return identity{}, fmt.Errorf("%w: it was made in the other way of running as root", ErrOwner)
	case owner.Uid == 0:
		return identity{namespace: true}, nil
	default:
		return identity{uid: int(owner.Uid), gid: int(owner.Gid), chown: true}, nil
	}
}

func newRootIdentity(wish Identity) (identity, error) {
	if wish == Namespace || (wish == Auto && namespaceAllowed()) {
		return identity{namespace: true}, nil
	}
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

// namespaceAllowed tries a user namespace on the cheapest program there is. Containers without CAP_SYS_ADMIN deny it.
func namespaceAllowed() bool {
	c, err := start("/bin/true", nil, identity{namespace: true}.attributes(syscall.SIGKILL), io.Discard)
	if err != nil {
		return !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EINVAL)
	}
	<-c.done
	return c.err == nil
}
