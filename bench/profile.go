package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// profiler writes CPU profiles of timed parts into a folder; without a folder it does nothing.
type profiler struct{ dir string }

// start begins the profile cpu-<name>.pprof; an empty name means none. The function that it returns ends it.
func (p profiler) start(name string) (stop func() error, err error) {
	if p.dir == "" || name == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, fmt.Errorf("create profile folder: %w", err)
	}
	file, err := os.Create(filepath.Join(p.dir, "cpu-"+name+".pprof"))
	if err != nil {
		return nil, fmt.Errorf("create profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("start profile: %w", err), file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
