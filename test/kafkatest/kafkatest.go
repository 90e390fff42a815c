// Package kafkatest gives tests a Kafka that speaks the real protocol. The variable TWINBOX_TEST_KAFKA chooses, for the
// whole test binary:
//
//	unset        a fresh in-process broker for each call of [Brokers]
//	host:port    that broker, shared by all tests, with a test's own topics and groups
//	real         a real Apache Kafka, shared by all tests of the binary (without java and mvn the tests fail)
//
// Fault injection needs the in-process broker: [Fake] skips its test when the variable is set.
package kafkatest

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"example.com/twinbox/test/pgtest"
)

// Variable chooses the broker; see the package documentation.
const Variable = "TWINBOX_TEST_KAFKA"

// Patience is how long a helper waits for the broker before it fails the test.
const Patience = 30 * time.Second

// Main is [pgtest.Main] for packages whose tests ask for a broker: func TestMain(m *testing.M) { kafkatest.Main(m) }.
// Known are goroutines that the tests leave behind.
func Main(m *testing.M, known ...goleak.Option) {
	// A Kafka client leaves these running: a ticker of its metrics, for ten seconds a timer for each partition without a
	// leader, and a client whose connection broke while it was made. The broker in process leaves a request that a test
	// holds back when the broker ends.
	pgtest.Main(tests{m}, append(known,
		goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"),
		goleak.IgnoreAnyFunction("github.com/eapache/go-resiliency/breaker.(*Breaker).timer"),
		goleak.IgnoreAnyFunction("github.com/IBM/sarama.(*client).backgroundMetadataUpdater"),
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*Cluster).runControl.func1"))...)
}

type tests struct{ m *testing.M }

func (t tests) Run() int {
	defer stopReal()
	return t.m.Run()
}

// Brokers returns the addresses of a broker for this test; see [Variable].
func Brokers(t testing.TB) []string {
	t.Helper()
	switch choice := os.Getenv(Variable); choice {
	case "":
		_, addrs := start(t)
		return addrs
	case "real":
		return []string{sharedReal(t)}
	default:
		return strings.Split(choice, ",")
	}
}

// IsShared reports whether [Variable] names a broker. Tests whose topics have the same name must run alone.
func IsShared() bool { return IsReal() && os.Getenv(Variable) != "real" }

// IsReal reports whether [Brokers] returns a real Kafka.
func IsReal() bool { return os.Getenv(Variable) != "" }

// InProcess skips the test when [Variable] is set.
func InProcess(t testing.TB) {
	t.Helper()
	if IsReal() {
		t.Skip("always in process: make test runs it")
	}
}

// Fake starts an in-process broker with one node, which takes scripted faults. Group sessions may be as short as 100
// ms. See [InProcess].
func Fake(t testing.TB, opts ...kfake.Opt) (*kfake.Cluster, []string) {
	t.Helper()
	InProcess(t)
	return start(t, opts...)
}

func start(t testing.TB, opts ...kfake.Opt) (*kfake.Cluster, []string) {
	t.Helper()
	defaults := []kfake.Opt{kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(100 * time.Millisecond)}
	cluster, err := kfake.NewCluster(append(defaults, opts...)...)
	require.NoError(t, err, "start in-process broker")
	t.Cleanup(cluster.Close)
	return cluster, cluster.ListenAddrs()
}

var notAllowed = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// Group returns a consumer group name that no other test uses: the test's, made safe for Kafka, with a random part.
func Group(t testing.TB) string {
	name := notAllowed.ReplaceAllString(t.Name(), ".")
	return name[:min(len(name), 120)] + "." + uuid.NewString()[:8]
}
