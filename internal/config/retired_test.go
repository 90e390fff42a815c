package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
)

func TestARetiredVariableIsNoProblem(t *testing.T) {
	t.Parallel()
	var cfg sample
	environ := valid("KAFKA_EDGE=batch", "MAIL_CLAIM_BATCH=16")
	require.Empty(t, load(t, environ, &cfg))
	require.Contains(t, config.Retired(environ), "KAFKA_EDGE")
	require.Contains(t, config.Retired(environ), "MAIL_CLAIM_BATCH")
	require.Empty(t, config.Retired(valid("KAFKA_EDGES=batch")))
}
