// Command reset empties the folder of all local state, unless a system runs on it: go run ./dev/tools/reset [DIR].
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.com/twinbox/dev/local/filelock"
)

func main() {
	dir := ".twinbox"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := reset(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// locks are what running systems hold in the folder: make run and make kafka. The kernel frees them with the process,
// so a lock that is held means a system that runs.
var locks = []string{"lock", filepath.Join("kafka-real", "lock")}

// reset removes the folder while it holds the locks, so that nothing can start on what is half gone.
func reset(dir string) error {
	for _, name := range locks {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue // never used
		}
		lock, err := filelock.Take(path)
		if held, is := errors.AsType[*filelock.HeldError](err); is {
			return fmt.Errorf("process %d runs on %s: stop it first (Ctrl-C where it runs, or kill %d); nothing was removed",
				held.PID, filepath.Dir(path), held.PID)
		}
		if err != nil {
			return fmt.Errorf("reset %s: %w", dir, err)
		}
		defer func() { _ = lock.Release() }() // its file is gone by then
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("reset %s: %w", dir, err)
	}
	return nil
}
