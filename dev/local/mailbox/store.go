package mailbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// store holds the mails, oldest first, and mirrors them to files.
type store struct {
	dir  string
	keep int

	mu       sync.Mutex
	last     int // number of the newest mail there has been
	messages []Message
	signal   chan struct{} // closed at each change
}

const extension = ".eml"

// openStore loads the mails of a folder. A file that is not one of ours is left alone.
func openStore(dir string, keep int) (*store, error) {
	s := &store{dir: dir, keep: keep, signal: make(chan struct{})}
	if dir == "" {
		return s, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir) // sorted by name, and the names have leading zeros
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		number, err := strconv.Atoi(strings.TrimSuffix(entry.Name(), extension))
		if err != nil || filepath.Ext(entry.Name()) != extension {
			continue
		}
		s.last = max(s.last, number)
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		if message, err := decode(number, content); err == nil {
			s.messages = append(s.messages, message)
		}
	}
	return s, s.prune()
}

// add keeps a mail: in its file first, whole or not at all.
func (s *store) add(env envelope, raw []byte) error {
	content, err := encode(env, raw)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	number := s.last + 1
	if s.dir != "" {
		making := filepath.Join(s.dir, "incoming")
		if err := os.WriteFile(making, content, 0o600); err != nil {
			return err
		}
		if err := os.Rename(making, s.path(number)); err != nil {
			return err
		}
	}
	s.last = number
	s.messages = append(s.messages, parse(strconv.Itoa(number), env, raw))
	close(s.signal)
	s.signal = make(chan struct{})
	return s.prune()
}

func (s *store) prune() error {
	for len(s.messages) > s.keep {
		number, err := strconv.Atoi(s.messages[0].ID)
		if err != nil {
			return err
		}
		if s.dir != "" {
			if err := os.Remove(s.path(number)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		s.messages = s.messages[1:]
	}
	return nil
}

func (s *store) path(number int) string {
	return filepath.Join(s.dir, fmt.Sprintf("%08d%s", number, extension))
}

// all gives the mails, newest first.
func (s *store) all() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	messages := append([]Message{}, s.messages...) // never nil: none is an empty list in JSON too
	slices.Reverse(messages)
	return messages
}

func (s *store) one(id string) (Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.messages, func(m Message) bool { return m.ID == id })
	if i < 0 {
		return Message{}, false
	}
	return s.messages[i], true
}

func (s *store) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signal
}

// envelopeHeader carries the envelope as the file's first header, so that the file is still a mail that other
// programs open.
const envelopeHeader = "X-Twinbox-Envelope: "

func encode(env envelope, raw []byte) ([]byte, error) {
	about, err := json.Marshal(env)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(envelopeHeader), about, []byte("\r\n"), raw), nil
}

func decode(number int, content []byte) (Message, error) {
	first, raw, _ := bytes.Cut(content, []byte("\r\n"))
	about, ok := bytes.CutPrefix(first, []byte(envelopeHeader))
	if !ok {
		return Message{}, errors.New("read mail: no envelope")
	}
	var env envelope
	if err := json.Unmarshal(about, &env); err != nil {
		return Message{}, fmt.Errorf("read envelope: %w", err)
	}
	return parse(strconv.Itoa(number), env, raw), nil
}
