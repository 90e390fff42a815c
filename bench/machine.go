package main

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"github.com/prometheus/procfs"
)

// It names no host and no folder.
type machine struct {
	Cores      int               `json:"cores"`
	Load       number            `json:"load_average"` // of the last minute, before the run
	OS         string            `json:"os"`
	Go         string            `json:"go"`
	PostgreSQL string            `json:"postgresql"`
	Broker     string            `json:"broker"`
	Settings   map[string]string `json:"postgresql_settings"`
}

const machineSQL = `
select split_part(version(), ' ', 2), jsonb_object_agg(name, current_setting(name))
from unnest(array['fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'shared_buffers', 'max_wal_size',
    'autovacuum']) as name`

func (s *stage) machine(ctx context.Context, load float64) (machine, error) {
	m := machine{
		Cores: runtime.GOMAXPROCS(0), Load: number(load), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
		Broker: "in process (kfake)",
	}
	if !s.inMemory {
		m.Broker = "given with --brokers"
	}
	if err := s.admin.QueryRow(ctx, machineSQL).Scan(&m.PostgreSQL, &m.Settings); err != nil {
		return m, fmt.Errorf("read version and settings: %w", err)
	}
	return m, nil
}

// Other programs kept at least half of the cores busy.
func (m machine) isLoaded() bool { return float64(m.Load) >= float64(m.Cores)/2 }

// loadAverage is NaN where the system has no /proc.
func loadAverage() float64 {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return math.NaN()
	}
	load, err := proc.LoadAvg()
	if err != nil {
		return math.NaN()
	}
	return load.Load1
}

// The unit of CPU time in /proc is the same on every platform of Go.
const ticksPerSecond = 100

// cpuOf counts the children too, ended ones included. It is NaN where the system has no /proc.
func cpuOf(pid int) (total float64, err error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return math.NaN(), nil //nolint:nilerr // such a system has no figure
	}
	for _, process := range processes {
		stat, err := process.Stat()
		switch {
		case err != nil:
		case stat.PID == pid:
			total += stat.CPUTime() + float64(stat.CUTime+stat.CSTime)/ticksPerSecond
		case stat.PPID == pid:
			total += stat.CPUTime()
		}
	}
	if total == 0 {
		return 0, fmt.Errorf("process %d uses no CPU time", pid)
	}
	return total, nil
}
