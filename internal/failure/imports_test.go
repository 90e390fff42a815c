package failure_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table alone takes no client library along.
func TestNoClientLibraryIsNeeded(t *testing.T) {
	t.Parallel()
	foreign := "{{with .Module}}{{if not .Main}}{{$.ImportPath}}{{end}}{{end}}"
	said, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", foreign, ".").Output()
	require.NoError(t, err)
	require.Empty(t, string(said), "packages of other modules")
}
