package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/verify"
)

func systemOf(ctx context.Context, at local.Addresses) (system verify.System, err error) {
	system.Brokers = strings.Split(at.KafkaBrokers, ",")
	for _, name := range at.Names {
		s, err := at.Instances[name].Verified(ctx)
		if err != nil {
			return system, err
		}
		system.Services = append(system.Services, s)
	}
	return system, nil
}

func writeOperators(at local.Addresses) (file string, err error) {
	system, err := systemOf(context.Background(), at)
	if err != nil {
		return "", err
	}
	operators := client.Operators{Services: map[string]string{}, Token: at.AdminToken.Reveal(), Verify: system}
	for name, listen := range at.Services {
		operators.Services[name] = local.Reachable(listen.Admin)
	}
	content, err := json.MarshalIndent(operators, "", "  ")
	file = filepath.Join(at.Dir, client.OperatorsFile)
	if err == nil {
		err = os.WriteFile(file+".new", append(content, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return "", fmt.Errorf("write operators: %w", err)
	}
	return file, nil
}
