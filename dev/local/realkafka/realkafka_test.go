package realkafka

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/twinbox/internal/kafka"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

func TestMissingProgramsAreSaid(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Start(t.Context(), Config{})
	require.ErrorIs(t, err, ErrNoJava)

	_, err = ensureJars(t.Context(), Config{CacheDir: t.TempDir(), Progress: func(string) {}})
	require.ErrorIs(t, err, ErrNoMaven)
}

func TestAFailedFetchLeavesNothingThatLooksFinished(t *testing.T) {
	bin, cache := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "mvn"), []byte("#!/bin/sh\necho no network\nexit 1\n"), 0o755))
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	_, err := ensureJars(t.Context(), Config{CacheDir: cache, Progress: func(string) {}})
	require.ErrorContains(t, err, "no network")
	left, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestRunsAndKeepsItsData needs Java, so it runs only where the real Kafka is asked for.
func TestRunsAndKeepsItsData(t *testing.T) {
	if os.Getenv("TWINBOX_TEST_KAFKA") != "real" {
		t.Skip("TWINBOX_TEST_KAFKA is not \"real\"")
	}
	dir := filepath.Join(t.TempDir(), "kafka")
	topic := kafka.Topic{Name: "kept", Partitions: 3}
	server, err := Start(t.Context(), Config{Dir: dir, Progress: func(s string) { t.Log(s) }})
	require.NoError(t, err)
	addr := server.Addr()
	require.NoError(t, kafka.EnsureTopics(t.Context(), kafka.Config{Brokers: []string{addr}}, topic))
	require.NoError(t, server.Stop())
	<-server.Done()

	server, err = Start(t.Context(), Config{Dir: dir, Addr: addr})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Stop()) }()
	found, err := kafka.DescribeTopics(t.Context(), kafka.Config{Brokers: []string{addr}}, topic.Name)
	require.NoError(t, err)
	require.EqualValues(t, 3, found[topic.Name].Partitions)
}
