package binaries

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// installers install PostgreSQL, by the package manager that they need.
var installers = []struct{ manager, command string }{
	{"apt-get", "apt-get install -y postgresql"},
	{"dnf", "dnf install -y postgresql-server"},
	{"apk", "apk add postgresql"},
	{"pacman", "pacman -S --needed postgresql"},
	{"brew", "brew install postgresql@" + fetchedMajor},
}

// notFound is [ErrNotFound] with the command that installs PostgreSQL on this machine, if one is known.
func notFound() error {
	for _, i := range installers {
		if _, err := exec.LookPath(i.manager); err != nil {
			continue
		}
		if os.Geteuid() != 0 && i.manager != "brew" {
			i.command = "sudo " + i.command
		}
		return fmt.Errorf("%w: %s", ErrNotFound, i.command)
	}
	return ErrNotFound
}

// hasMusl reports whether the system below root has musl. The fetched programs need glibc.
func hasMusl(root string) bool {
	found, _ := filepath.Glob(filepath.Join(root, "lib", "ld-musl-*")) // the pattern is well-formed
	return len(found) > 0
}
