package operations

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/internal/ops/admin/client"
)

// writeOperators writes the addresses and the token for the operator's command. A reader sees all of the file or none.
func writeOperators(at local.Addresses) (remove func() error, err error) {
	operators := client.Operators{Services: map[string]string{}, Token: at.AdminToken.Reveal()}
	for name, listen := range at.Services {
		operators.Services[name] = local.Reachable(listen.Admin)
	}
	content, err := json.MarshalIndent(operators, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write operators: %w", err)
	}
	file := filepath.Join(at.Dir, client.OperatorsFile)
	err = os.WriteFile(file+".new", append(content, '\n'), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return nil, fmt.Errorf("write operators: %w", err)
	}
	return func() error {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove operators: %w", err)
		}
		return nil
	}, nil
}
