package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync"
)

// profiler writes CPU profiles of timed parts into a folder; without a folder it does nothing.
type profiler struct{ dir string }

// profiling is held while a profile is taken: the runtime takes one at a time, and refuses a second.
var profiling sync.Mutex

// start begins the profile cpu-<name>.pprof, after the end of any other; an empty name means none. The function that it
// returns ends it.
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
	profiling.Lock()
	if err := pprof.StartCPUProfile(file); err != nil {
		profiling.Unlock()
		return nil, errors.Join(fmt.Errorf("start profile: %w", err), file.Close())
	}
	return func() error {
		defer profiling.Unlock()
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
