package services_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/examples/services"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/servicetest"
)

func TestEveryExample(t *testing.T) {
	t.Parallel()
	addresses := map[string]string{}
	for _, s := range services.All() {
		unset := s.Unset()
		for _, variable := range []string{"HTTP_ADDR", "ADMIN_ADDR"} {
			addr := unset.Value(variable)
			if variable == "HTTP_ADDR" && !unset.Reads(variable) {
				continue
			}
			require.Empty(t, addresses[addr], "%s of %s", variable, s.Name)
			require.True(t, strings.HasPrefix(addr, "127.0.0.1:81"), "%s of %s: the examples' ports", variable, s.Name)
			addresses[addr] = s.Name
		}
		require.Equal(t, unset.Reads("HTTP_ADDR"), json.Valid(s.API), "%s shows the document of its API", s.Name)
		require.Equal(t, migrations.Audit.Name, s.Migrations[0].Name, "what is done by hand is written down")
		_, err := os.Stat(filepath.Join("../cmd", s.Name, "main.go"))
		require.NoError(t, err, "it has a program")
		_, err = os.Stat(filepath.Join("..", s.Name, "README.md"))
		require.NoError(t, err, "it has a page")
	}
	programs, err := os.ReadDir("../cmd")
	require.NoError(t, err)
	for _, program := range programs {
		if name := program.Name(); !program.IsDir() || name == "forwarder" || name == "devstack" {
			continue // neither program has a database
		}
		require.True(t, slices.ContainsFunc(services.All(), func(s eventing.Described) bool {
			return s.Name == program.Name()
		}), "each program is an example: %s", program.Name())
	}
}

func TestReadModelsHandleTheEventsOfTheirService(t *testing.T) {
	t.Parallel()
	for _, s := range services.All() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			servicetest.RequireOwnEventsHandled(t, s)
		})
	}
}
