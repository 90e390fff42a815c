package local

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.com/twinbox/frame/config"
)

// OperatorsFile is where a running stack says how to operate it. It holds the token, so it is its owner's alone, and it
// is there only while the stack runs, unless that was killed.
const OperatorsFile = "operators.json"

// Operators is what is in that file.
type Operators struct {
	Services map[string]string `json:"services"` // admin listeners by the service's name
	Token    string            `json:"token"`
}

// ReadOperators finds out how to operate the stack in the folder. Where none runs the error is [os.ErrNotExist].
func ReadOperators(dir string) (Operators, error) {
	var o Operators
	content, err := os.ReadFile(filepath.Join(dir, OperatorsFile))
	if err != nil {
		return o, fmt.Errorf("read operators: %w", err)
	}
	if err := json.Unmarshal(content, &o); err != nil {
		return o, fmt.Errorf("read operators: %w", err)
	}
	return o, nil
}

func newToken() config.Secret {
	token := make([]byte, secretBytes)
	_, _ = rand.Read(token) // never fails
	return config.Secret(hex.EncodeToString(token))
}

func (h *stack) writeOperators() error {
	operators := Operators{Services: map[string]string{}, Token: h.at.AdminToken.Reveal()}
	for name, listen := range h.at.Services {
		operators.Services[name] = reachable(listen.Admin)
	}
	content, err := json.MarshalIndent(operators, "", "  ")
	if err != nil {
		return fmt.Errorf("write operators: %w", err)
	}
	path := h.folder.file(OperatorsFile)
	if err := os.WriteFile(path+".new", append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("write operators: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write operators: %w", err)
	}
	return nil
}

func (h *stack) removeOperators() error {
	if err := os.Remove(h.folder.file(OperatorsFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove operators: %w", err)
	}
	return nil
}
