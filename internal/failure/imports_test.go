package failure_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table alone takes no client library along.
func TestNoClientLibraryIsNeeded(t *testing.T) {
	t.Parallel()
	said, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	for pkg := range strings.FieldsSeq(string(said)) {
		first, _, _ := strings.Cut(pkg, "/")
		require.False(t, strings.Contains(first, ".") && first != "example.com", pkg)
	}
}
