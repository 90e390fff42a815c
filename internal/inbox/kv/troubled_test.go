package kv

import (
	"context"
	"errors"
	"sync"
)

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
