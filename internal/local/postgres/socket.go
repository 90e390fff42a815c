package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const socketPrefix = "twinbox-pg-"

// makeSocketDir makes a short path: a socket's holds 107 bytes at most, fewer than many a project's folder.
func makeSocketDir(dir string, id identity) (string, error) {
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", socketPrefix)
	} else {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return "", err
	}
	if err := give(dir, id); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

var socketOption = regexp.MustCompile(`"-k" "([^"]+)"`)

// Remove deletes the data directory of a server that has ended, and what it left elsewhere if its program was killed.
func Remove(dataDir string) error {
	sweepSocketDir(dataDir)
	return os.RemoveAll(dataDir)
}

// sweepSocketDir removes the folder of a server whose program was killed and could not do so. The server leaves its
// command line in the data directory.
func sweepSocketDir(dataDir string) {
	content, err := os.ReadFile(filepath.Join(dataDir, "postmaster.opts"))
	if err != nil {
		return // the first start
	}
	found := socketOption.FindSubmatch(content)
	if found != nil && strings.HasPrefix(filepath.Base(string(found[1])), socketPrefix) {
		_ = os.RemoveAll(string(found[1])) // litter, harmless where it stays
	}
}
