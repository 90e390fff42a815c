package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// OperatorsFile is where a dev stack says how to operate it. It holds the token, so it is its owner's alone, and it is
// there only while the stack runs, unless that was killed.
const OperatorsFile = "operators.json"

// Operators is what is in that file.
type Operators struct {
	Services map[string]string `json:"services"` // admin listeners by the service's name
	Token    string            `json:"token"`
}

// ReadOperators finds out how to operate the dev stack in the folder. Where none runs the error is [os.ErrNotExist].
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

// Write makes the file in the folder. A reader sees all of it or none.
func (o Operators) Write(dir string) error {
	content, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return fmt.Errorf("write operators: %w", err)
	}
	path := filepath.Join(dir, OperatorsFile)
	if err := os.WriteFile(path+".new", append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("write operators: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write operators: %w", err)
	}
	return nil
}

// RemoveOperators takes the file away, if it is there.
func RemoveOperators(dir string) error {
	if err := os.Remove(filepath.Join(dir, OperatorsFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove operators: %w", err)
	}
	return nil
}
