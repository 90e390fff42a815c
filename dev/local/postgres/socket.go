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
	sweepSocketDir(socketDirOf(dataDir))
	return os.RemoveAll(dataDir)
}

// socketDirOf reads which folder the last server of the data directory had: it leaves its command line there. It is
// empty before the first start.
func socketDirOf(dataDir string) string {
	content, err := os.ReadFile(filepath.Join(dataDir, "postmaster.opts"))
	if err != nil {
		return ""
	}
	found := socketOption.FindSubmatch(content)
	if found == nil || !strings.HasPrefix(filepath.Base(string(found[1])), socketPrefix) {
		return ""
	}
	return string(found[1])
}

// sweepSocketDir removes the folder of a server that is gone and whose program was killed and could not do so.
func sweepSocketDir(dir string) {
	if dir != "" {
		_ = os.RemoveAll(dir) // litter, harmless where it stays
	}
}
