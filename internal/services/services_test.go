package services_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/services"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/servicetest"
)

func TestEveryService(t *testing.T) {
	t.Parallel()
	addresses := map[string]string{}
	for _, s := range services.All() {
		unset := s.Unset()
		for _, variable := range []string{
			"DATABASE_URL", "KAFKA_BROKERS", "ADMIN_ADDR", "ADMIN_TOKEN", "LOG_LEVEL", "LOG_FORMAT", "SHUTDOWN_TIMEOUT",
		} {
			require.True(t, unset.Reads(variable), "%s reads no %s", s.Name, variable)
		}
		admin := unset.Value("ADMIN_ADDR")
		require.Empty(t, addresses[admin], "%s and %s have one admin address", s.Name, addresses[admin])
		require.True(t, strings.HasPrefix(admin, "127.0.0.1:"), "operations are for this machine alone unless told otherwise")
		addresses[admin] = s.Name
		require.Equal(t, migrations.Audit.Name, s.Migrations[0].Name, "what is done by hand is written down")
		_, err := os.Stat(filepath.Join("../../cmd", s.Name, "main.go"))
		require.NoError(t, err, "it has a program")
	}
	programs, err := os.ReadDir("../../cmd")
	require.NoError(t, err)
	for _, program := range programs {
		if program.Name() == "twinbox" {
			continue
		}
		require.Contains(t, services.Names(), program.Name(), "each program is a service, but for the operator's")
	}
}

// The user of a read model that ignores an event is refused with 409 from then on.
func TestReadModelsHandleTheEventsOfTheirService(t *testing.T) {
	t.Parallel()
	for _, s := range services.All() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			servicetest.RequireOwnEventsHandled(t, s)
		})
	}
}

func TestEveryServiceLinksWatermill(t *testing.T) {
	t.Parallel()
	for _, name := range services.Names() {
		listed, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../../cmd/"+name).Output()
		require.NoError(t, err)
		for _, pkg := range []string{
			"github.com/ThreeDotsLabs/watermill/message", "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka",
			"github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql",
		} {
			require.Contains(t, strings.Fields(string(listed)), pkg, name)
		}
	}
}
