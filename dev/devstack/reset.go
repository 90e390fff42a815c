package devstack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.com/twinbox/dev/local/filelock"
)

type ResetCommand struct {
	Dir string `arg:"" optional:"" help:"Folder of all state." default:".twinbox"`
}

// locks are the files that a running system locks. The kernel frees them with the process.
var locks = []string{"lock", filepath.Join("kafka-real", "lock")}

// Run holds the locks while it removes the folder: no system starts on half of it.
func (c *ResetCommand) Run() error {
	for _, name := range locks {
		path := filepath.Join(c.Dir, name)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		lock, err := filelock.Take(path)
		if err != nil {
			return fmt.Errorf("reset %s: %w; nothing was removed", c.Dir, err)
		}
		defer func() { _ = lock.Unlock() }()
	}
	// The rename is one step: a system that starts during the removal gets a new folder.
	removed := filepath.Clean(c.Dir) + ".removed"
	err := os.RemoveAll(removed) // an interrupted reset left it
	if err == nil {
		err = os.Rename(c.Dir, removed)
	}
	if err == nil {
		err = os.RemoveAll(removed)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reset %s: %w", c.Dir, err)
	}
	return nil
}
