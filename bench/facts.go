package main

import (
	"context"
	"fmt"
	"runtime"
)

// facts is what the figures depend on. Nothing in it names a machine or a folder.
type facts struct {
	Cores      int               `json:"cores"`
	OS         string            `json:"os"`
	Go         string            `json:"go"`
	PostgreSQL string            `json:"postgresql"`
	Broker     string            `json:"broker"`
	Settings   map[string]string `json:"postgresql_settings"`
}

// settingsSQL reads the settings that move the figures most.
const settingsSQL = `
select name, current_setting(name) from unnest(array['fsync', 'synchronous_commit', 'full_page_writes', 'wal_level',
    'shared_buffers', 'max_wal_size', 'autovacuum']) as name`

func (s *stage) facts(ctx context.Context) (facts, error) {
	f := facts{
		Cores: runtime.GOMAXPROCS(0), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
		Broker: "in process (kfake)", Settings: map[string]string{},
	}
	if s.broker == nil {
		f.Broker = "given with --brokers"
	}
	if err := s.admin.QueryRow(ctx, "select split_part(version(), ' ', 2)").Scan(&f.PostgreSQL); err != nil {
		return f, fmt.Errorf("read version: %w", err)
	}
	rows, err := s.admin.Query(ctx, settingsSQL)
	if err != nil {
		return f, fmt.Errorf("read settings: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return f, fmt.Errorf("read settings: %w", err)
		}
		f.Settings[name] = value
	}
	return f, rows.Err()
}
