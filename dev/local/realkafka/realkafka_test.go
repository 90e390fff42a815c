package realkafka

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
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

func TestOldJavaIsSaid(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "java"), []byte(script), 0o755))
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	_, err := Start(t.Context(), Config{})
	require.ErrorIs(t, err, ErrNoJava)
	require.ErrorContains(t, err, "java 11")
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

func TestJarsAreFetchedOnce(t *testing.T) {
	cache := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(cache, "kafka-"+Version), 0o755))
	t.Setenv("PATH", t.TempDir()) // no mvn
	jars, err := ensureJars(t.Context(), Config{CacheDir: cache})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(cache, "kafka-"+Version), jars)
}

// Kafka listens seconds after its port was chosen: it must not be one that others are given who ask for any.
func TestAChosenPortIsNotGivenToOthers(t *testing.T) {
	t.Parallel()
	for range 20 {
		addr, err := pickAddr(t.Context(), "127.0.0.1:0")
		require.NoError(t, err)
		_, port, err := net.SplitHostPort(addr)
		require.NoError(t, err)
		number, err := strconv.Atoi(port)
		require.NoError(t, err)
		require.GreaterOrEqual(t, number, lowestPort)
		require.Less(t, number, highestPort)
	}
}

func TestBusyPortIsSaidBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, busy.Close()) }()
	_, err = pickAddr(t.Context(), busy.Addr().String())
	require.ErrorContains(t, err, "address already in use")
}

// TestRunsAndKeepsItsData is the only test here that starts Kafka, and it is short: `make test` has Java only where
// the harness for the real Kafka is asked for.
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
