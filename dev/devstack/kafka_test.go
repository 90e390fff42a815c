package devstack

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
)

func TestKafkaRunsUntilItIsStopped(t *testing.T) {
	if os.Getenv("TWINBOX_TEST_KAFKA") != "real" {
		t.Skip("TWINBOX_TEST_KAFKA is not \"real\"")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stderr bytes.Buffer
	stdout := &signalling{written: stop}
	data := filepath.Join(t.TempDir(), "kafka")
	code := run(ctx, []string{"kafka", "--addr", "127.0.0.1:0", "--data", data}, stdout, &stderr, nil)
	require.Equal(t, service.ExitOK, code, stderr.String())
	require.Contains(t, stdout.String(), "Apache Kafka")
	require.DirExists(t, filepath.Join(data, "data"))
}

type signalling struct {
	bytes.Buffer
	written func()
}

func (s *signalling) Write(p []byte) (int, error) {
	defer s.written()
	return s.Buffer.Write(p)
}
