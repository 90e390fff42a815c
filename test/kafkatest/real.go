package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/realkafka"
	"example.com/twinbox/internal/failure"
)

// real are the servers of the test binary. A start holds the lock, because the first one may fetch.
var real struct {
	sync.Mutex
	err    error // of a start
	all    []*realkafka.Server
	shared string // address of one of them
}

// StartReal starts a real Kafka that lives as long as the test binary, and returns its address. It fails the test when
// java or mvn is missing: no test is skipped.
func StartReal(t testing.TB) string {
	t.Helper()
	real.Lock()
	defer real.Unlock()
	return startReal(t)
}

func sharedReal(t testing.TB) string {
	t.Helper()
	real.Lock()
	defer real.Unlock()
	if real.shared == "" {
		real.shared = startReal(t)
	}
	return real.shared
}

func startReal(t testing.TB) (addr string) {
	t.Helper()
	if real.err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // the first time it is fetched
		defer cancel()
		var server *realkafka.Server
		server, real.err = realkafka.Start(ctx, realkafka.Config{
			Progress: func(what string) { _, _ = os.Stderr.WriteString("kafkatest: " + what + "\n") },
		})
		if real.err == nil {
			real.all = append(real.all, server)
			addr, real.err = server.Addr(), coordinate(ctx, server.Addr())
		}
	}
	require.NoError(t, real.err, "start the real Kafka")
	return addr
}

// The first group makes the broker create its topic of offsets. Until coordinate returns, the broker may refuse clients
// and end their sessions.
func coordinate(ctx context.Context, addr string) (err error) {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	admin, err := sarama.NewClusterAdmin([]string{addr}, cfg)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, admin.Close()) }()
	const groups = 32 // some in each of those partitions
	for n := 0; n < groups; {
		answer, err := admin.ListConsumerGroupOffsets(fmt.Sprintf("kafkatest-%d", n), nil)
		if err == nil && answer.Err == sarama.ErrNoError {
			n++
			continue
		}
		if cause := failure.Sleep(ctx, 20*time.Millisecond); cause != nil {
			return fmt.Errorf("wait for the group coordinator: %w", errors.Join(cause, err))
		}
	}
	return nil
}

func stopReal() {
	real.Lock()
	defer real.Unlock()
	for _, server := range real.all {
		if err := server.Stop(); err != nil {
			_, _ = os.Stderr.WriteString("kafkatest: " + err.Error() + "\n")
		}
	}
}
