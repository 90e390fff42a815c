package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.com/twinbox/internal/ops/admin/client"
)

// writeOperators says how to operate this stack, for the operator's command. A reader sees all of the file or none.
func (h *stack) writeOperators() error {
	operators := client.Operators{Services: map[string]string{}, Token: h.at.AdminToken.Reveal()}
	for name, listen := range h.at.Services {
		operators.Services[name] = reachable(listen.Admin)
	}
	content, err := json.MarshalIndent(operators, "", "  ")
	if err != nil {
		return fmt.Errorf("write operators: %w", err)
	}
	file := h.operatorsFile()
	err = os.WriteFile(file+".new", append(content, '\n'), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("write operators: %w", err)
	}
	return nil
}

func (h *stack) removeOperators() error {
	if err := os.Remove(h.operatorsFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove operators: %w", err)
	}
	return nil
}

func (h *stack) operatorsFile() string { return filepath.Join(h.folder.path, client.OperatorsFile) }
