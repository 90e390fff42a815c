//go:build faults

package eventing_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

var points = []string{
	"kafka.taken",
	"inbox.handling", "inbox.handled", "inbox.committed",
	"kafka.before_mark", "kafka.after_mark",
}

func TestAMemberThatDiesAtEachPoint(t *testing.T) {
	t.Parallel()
	pool := newLedger(t)
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dieAt(t, pool, point)
		})
	}
}

func dieAt(t *testing.T, pool *pgxpool.Pool, point string) {
	t.Helper()
	s := newStage(t, pool, kafkatest.Brokers(t), "KAFKA_INSTANCE_ID=one", "KAFKA_TOPIC_PARTITIONS=3",
		"KAFKA_SESSION_TIMEOUT=6s")
	s.story(t, func() {
		armed := s.member
		armed.At, armed.Nth = strings.Replace(point, "inbox.", "inbox."+armed.Consumer+".", 1), 2
		require.EqualError(t, crashtest.Start(t, armed).Wait(t), crashtest.Killed)
	})
}

// The client library commits the offset, so the broker decides when to kill.
func TestAMemberThatDiesAroundTheOffsetCommit(t *testing.T) {
	t.Parallel()
	pool := newLedger(t)
	for name, committed := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, brokers := kafkatest.Fake(t)
			s := newStage(t, pool, brokers, "KAFKA_INSTANCE_ID=one", "KAFKA_TOPIC_PARTITIONS=3")
			s.story(t, func() {
				reached, goOn := atOffsetCommit(cluster, committed)
				doomed := s.start(t)
				<-reached
				require.NoError(t, doomed.Signal(syscall.SIGKILL))
				require.EqualError(t, doomed.Wait(t), crashtest.Killed)
				require.Equal(t, committed, s.committed(t) > 0)
				goOn()
			})
		})
	}
}

// reached closes instead of an accepted offset or, if taken, with the next heartbeat. No offset is accepted until goOn.
func atOffsetCommit(cluster *kfake.Cluster, taken bool) (reached <-chan struct{}, goOn func()) {
	var asked, over atomic.Bool
	there := make(chan struct{})
	reach := sync.OnceFunc(func() { close(there) })
	cluster.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		asked.Store(true)
		if taken || over.Load() {
			return nil, nil, false
		}
		reach()
		return nil, errors.New("not taken"), true
	})
	cluster.ControlKey(int16(kmsg.Heartbeat), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if taken && asked.Load() {
			reach()
		}
		return nil, nil, false
	})
	return there, func() { over.Store(true) }
}

func (s *stage) story(t *testing.T, die func()) {
	t.Helper()
	const effects = 20 + 5
	events := counted(1, 20)
	broken := events[0]
	broken.Data = []byte(`{"other":"payload"}`)
	s.send(append(events, broken, events[1])...)
	die()
	s.send(counted(5, 5)...)
	survivor := s.start(t)
	s.await(t, effects)
	testkit.Until(t, func() bool { return s.committed(t) == s.sent })
	end(t, survivor)
	s.requireOnceInOrder(t, effects)
	require.Zero(t, s.count(t, `select count(*) from inbox_attempt where consumer = $1`))
	require.Equal(t, 1, s.count(t, `select count(*) from dead_letter where consumer = $1`))
}

func TestEveryCrashPointOfConsumingIsInTheList(t *testing.T) {
	t.Parallel()
	in := regexp.MustCompile(`(?:fault\.Here\("(kafka\.[a-z_]+)"|in\.crash\("([a-z_]+)")\)`)
	var found []string
	for _, folder := range []string{"../../kafka", "../../inbox"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, match := range in.FindAllStringSubmatch(string(text), -1) {
				if match[2] != "" {
					match[1] = "inbox." + match[2]
				}
				if !strings.HasSuffix(match[1], "_send") {
					found = append(found, match[1])
				}
			}
		}
	}
	require.ElementsMatch(t, points, found)
}
