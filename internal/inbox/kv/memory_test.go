package kv

import (
	"context"
	"sync"
	"time"
)

// Memory is a [Store] in this process. It removes an expired value only when asked for it.
type Memory struct {
	ttl time.Duration

	mu       sync.Mutex
	entries  map[string]Entry
	revision uint64
}

// NewMemory returns a store that keeps values for ttl; 0 is forever.
func NewMemory(ttl time.Duration) *Memory { return &Memory{ttl: ttl, entries: map[string]Entry{}} }

// TTL implements [Store].
func (m *Memory) TTL() time.Duration { return m.ttl }

// Get implements [Store].
func (m *Memory) Get(_ context.Context, key string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry := m.look(key)
	if entry.Revision == 0 {
		return Entry{}, ErrNotFound
	}
	return entry, nil
}

// Put implements [Store].
func (m *Memory) Put(_ context.Context, key string, value []byte, revision uint64) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.look(key).Revision != revision {
		return 0, ErrRevision
	}
	m.revision++
	m.entries[key] = Entry{Value: value, Revision: m.revision, Created: time.Now()}
	return m.revision, nil
}

// Delete implements [Store].
func (m *Memory) Delete(_ context.Context, key string, revision uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if entry := m.look(key); entry.Revision == 0 || entry.Revision != revision {
		return ErrRevision
	}
	delete(m.entries, key)
	return nil
}

func (m *Memory) look(key string) Entry {
	entry := m.entries[key]
	if entry.Revision != 0 && m.ttl > 0 && time.Since(entry.Created) >= m.ttl {
		delete(m.entries, key)
		return Entry{}
	}
	return entry
}
