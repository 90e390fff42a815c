package failure_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNoKafkaClientIsNeeded(t *testing.T) {
	t.Parallel()
	packages, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(packages), "github.com/jackc/pgx/v5\n")
	require.NotContains(t, string(packages), "sarama")
	require.NotContains(t, string(packages), "watermill")
}
