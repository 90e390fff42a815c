package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"example.com/twinbox/dev/local/filelock"
)

type folder struct {
	path string
	lock *flock.Flock
}

// openFolder locks the folder for this process. Every account may pass through it: root's database may run as one.
// Secret files have their own mode.
func openFolder(dir string) (*folder, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find folder: %w", err)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	lock, err := filelock.Take(filepath.Join(path, "lock"))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("%w and other ports: make run ARGS='--dir=... --kafka-addr=127.0.0.1:0 ...'", err)
	}
	if err != nil {
		return nil, err
	}
	return &folder{path: path, lock: lock}, nil
}

func (f *folder) file(name string) string { return filepath.Join(f.path, name) }

// secret returns the key of verification links. It lasts, so links in mails stay valid over restarts.
func (f *folder) secret() (string, error) {
	path := f.file("verification-secret")
	content, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(content)), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read secret: %w", err)
	}
	text := newSecret()
	// A crash could cut the secret short without the rename.
	if err := os.WriteFile(path+".new", []byte(text+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write secret: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return "", fmt.Errorf("write secret: %w", err)
	}
	return text, nil
}
