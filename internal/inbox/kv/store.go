package kv

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Store remembers values by key, of URL-safe base64, for concurrent use. Two Puts with one revision must not both
// succeed, also from different processes.
type Store interface {
	// Get returns the key's entry, which may be out of date, or [ErrNotFound].
	Get(ctx context.Context, key string) (Entry, error)
	// Put writes the value if the key's revision is the given one (0: no key) and returns the new one, or [ErrRevision].
	Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Delete removes the key if its revision is the given one; otherwise it returns [ErrRevision].
	Delete(ctx context.Context, key string, revision uint64) error
	// TTL is how long a value is kept; 0 is forever.
	TTL() time.Duration
}

// Entry is a store's value of a key.
type Entry struct {
	Value    []byte
	Revision uint64    // never 0
	Created  time.Time // by the store's clock
}

// Answers of a [Store]. Any other error is an outage.
var (
	ErrNotFound = errors.New("no such key")
	ErrRevision = errors.New("the key has another revision")
)

// ErrUnavailable is in the errors of calls without the store's answer. They are transient.
var ErrUnavailable = errors.New("the inbox's store does not answer")

type digest [sha256.Size]byte

// A consumer's name has no NUL, so no two pairs have the same digest.
func digestOf(consumer, id string) digest { return sha256.Sum256([]byte(consumer + "\x00" + id)) }

// NATS does not allow all characters of an id.
func (d digest) key() string { return base64.RawURLEncoding.EncodeToString(d[:]) }

type state string

const (
	began state = "began"
	done  state = "done"
)

type note struct {
	state state
	life  string // a new one after each start
	owner string
}

func (n note) value() []byte { return []byte(string(n.state) + " " + n.life + " " + n.owner) }

func readNote(value []byte) (note, error) {
	parts := strings.SplitN(string(value), " ", 3)
	if len(parts) != 3 || parts[0] != string(began) && parts[0] != string(done) {
		return note{}, fmt.Errorf("the store's value %.20q is not an inbox's", value)
	}
	return note{state(parts[0]), parts[1], parts[2]}, nil
}
