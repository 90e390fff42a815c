package client

import (
	"encoding/json"
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
	API      string            `json:"api,omitempty"`   // where people reach the system
	Kafka    string            `json:"kafka,omitempty"` // its brokers, separated by commas
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
