package kv

import (
	"context"
	"errors"
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

var errAway = errors.New("away")

// troubled fails requests before or after they are carried out, and may read old data. Nil hooks do nothing.
type troubled struct {
	Store
	before, after func(question string, value []byte) error
	stale         func() bool

	mu    sync.Mutex
	first map[string]Entry
}

func (s *troubled) around(question string, value []byte, do func() error) error {
	if s.before != nil {
		if err := s.before(question, value); err != nil {
			return err
		}
	}
	err := do()
	if err == nil && s.after != nil {
		return s.after(question, value)
	}
	return err
}

func (s *troubled) Get(ctx context.Context, key string) (entry Entry, err error) {
	s.mu.Lock()
	old, known := s.first[key]
	s.mu.Unlock()
	if known && s.stale != nil && s.stale() {
		return old, nil
	}
	err = s.around("get", nil, func() (err error) {
		entry, err = s.Store.Get(ctx, key)
		return err
	})
	return entry, err
}

func (s *troubled) Put(ctx context.Context, key string, value []byte, over uint64) (revision uint64, err error) {
	err = s.around("put", value, func() (err error) {
		revision, err = s.Store.Put(ctx, key, value, over)
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		s.first = map[string]Entry{}
	}
	if _, known := s.first[key]; !known && err == nil {
		s.first[key] = Entry{Value: value, Revision: revision}
	}
	return revision, err
}

func (s *troubled) Delete(ctx context.Context, key string, revision uint64) error {
	return s.around("delete", nil, func() error { return s.Store.Delete(ctx, key, revision) })
}
