package postgres

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const socketPrefix = "twinbox-pg-"

// makeSocketDir makes a short path: a socket's holds 107 bytes at most.
func makeSocketDir(dir string, id identity) (string, error) {
	if dir == "" {
		dir = filepath.Join(os.TempDir(), socketPrefix+rand.Text()[:12])
	}
	return dir, makeDir(dir, id)
}

var socketOption = regexp.MustCompile(`"-k" "([^"]+)"`)

// Remove deletes the data directory and the socket's folder of an ended server.
func Remove(dataDir string) error {
	return errors.Join(os.RemoveAll(socketDirOf(dataDir)), os.RemoveAll(dataDir))
}

// socketDirOf reads the last server's command line. It is empty before the first start.
func socketDirOf(dataDir string) string {
	content, _ := os.ReadFile(filepath.Join(dataDir, "postmaster.opts"))
	found := socketOption.FindSubmatch(content)
	if found == nil || !strings.HasPrefix(filepath.Base(string(found[1])), socketPrefix) {
		return ""
	}
	return string(found[1])
}
