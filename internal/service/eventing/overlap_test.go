//go:build faults

package eventing_test

import (
	"errors"
	"flag"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

var churn = flag.Duration("eventing.churn", 0, "how long members come and go in TestMembersChurn; 0: six of them")

func TestAZombieGoesOnWithItsBatch(t *testing.T) {
	t.Parallel()
	pool := newLedger(t)
	for point, says := range map[string]string{
		"kafka.taken":     "duplicate", // the heir has applied everything
		"inbox.handled":   "applied",   // the heir waits for the transaction
		"inbox.committed": "applied",   // the heir gets the committed effects
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			cluster, brokers := kafkatest.Fake(t)
			s := newStage(t, pool, brokers, "KAFKA_SESSION_TIMEOUT=3s", "KAFKA_TOPIC_PARTITIONS=1",
				"INBOX_HANDLER_TIMEOUT=30s") // a member that is frozen for long is not late
			s.send(counted(1, 20)...)
			doomed := s.member
			doomed.At, doomed.Nth, doomed.Freeze = strings.Replace(point, "inbox.", "inbox."+doomed.Consumer+".", 1), 1, true
			joined := lastJoined(cluster)
			zombie := crashtest.Start(t, doomed)
			zombie.Await(t, 1, crashtest.Frozen)
			old := joined()
			told := holdHeartbeats(t, cluster, old)
			heir := s.start(t)
			testkit.Until(t, func() bool {
				now := s.members(t)
				return len(now) == 1 && now[0] != old
			}, "a takeover")
			s.send(counted(5, 10)...)
			s.awaitOverlap(t, point)
			zombie.Thaw(t)
			zombie.Await(t, 1, says)
			told()
			s.await(t, 30)
			testkit.Until(t, func() bool { return s.committed(t) == s.sent })
			end(t, zombie)
			end(t, heir)
			s.requireOnceInOrder(t, 30)
			require.Positive(t, zombie.Count("duplicate")+heir.Count("duplicate"), "both had the same record")
			require.Zero(t, s.count(t, `select count(*) from dead_letter where consumer = $1`))
		})
	}
}

func (s *stage) awaitOverlap(t *testing.T, point string) {
	t.Helper()
	if point != "inbox.handled" {
		s.await(t, 30)
		return
	}
	testkit.Until(t, func() bool {
		var waiting int
		require.NoError(t, s.pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock' and query like '%update public.inbox_point%'`).
			Scan(&waiting))
		return waiting > 0
	})
}

// A frozen member may have left the group.
func lastJoined(cluster *kfake.Cluster) (id func() string) {
	var last atomic.Value
	cluster.ControlKey(int16(kmsg.SyncGroup), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		last.Store(request.(*kmsg.SyncGroupRequest).MemberID)
		return nil, nil, false
	})
	return func() string { return last.Load().(string) }
}

func holdHeartbeats(t *testing.T, cluster *kfake.Cluster, member string) (release func()) {
	t.Helper()
	released := make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	t.Cleanup(release) // after a failed test the cluster would not end
	cluster.ControlKey(int16(kmsg.Heartbeat), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if request.(*kmsg.HeartbeatRequest).MemberID == member {
			cluster.SleepControl(func() { <-released })
		}
		return nil, nil, false
	})
	return release
}

func refuseOffsets(cluster *kfake.Cluster) (take func()) {
	var taken atomic.Bool
	cluster.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if taken.Load() {
			return nil, nil, false
		}
		return nil, errors.New("not taken"), true
	})
	return func() { taken.Store(true) }
}

func (s *stage) members(t *testing.T) (ids []string) {
	t.Helper()
	groups, err := s.admin.DescribeConsumerGroups([]string{s.group()})
	require.NoError(t, err)
	for id := range groups[0].Members {
		ids = append(ids, id)
	}
	return ids
}

// The broker refuses the first member's offsets, so its events come again. Unlike Kafka, it removes a member that waits
// for an answer longer than its session, which is long enough for a busy machine.
func TestMembersChurn(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	s := newStage(t, newLedger(t), brokers, "KAFKA_SESSION_TIMEOUT=3s", "KAFKA_TOPIC_PARTITIONS=3",
		"INBOX_HANDLER_TIMEOUT=2s") // the group waits this long for a killed member
	takeOffsets := refuseOffsets(cluster)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	until := time.Now().Add(*churn)
	kills, duplicates, version := 0, 0, 1
	var crowd, gone []*crashtest.Process
	for round := 0; round < 6 || time.Now().Before(until); round++ {
		crowd = append(crowd, s.start(t))
		s.send(counted(version, 50)...)
		version += 10
		i := 0
		if round >= 6 {
			i = random.IntN(len(crowd))
		}
		s.await(t, (version-1)*5-40) // most of the events come while the next member joins
		if p := crowd[i]; round%2 == 0 {
			require.NoError(t, p.Signal(syscall.SIGKILL))
			_ = p.Wait(t)
			takeOffsets()
			kills++
		} else {
			end(t, p)
		}
		gone = append(gone, crowd[i])
		crowd = append(crowd[:i], crowd[i+1:]...)
		if len(crowd) < 2 {
			crowd = append(crowd, s.start(t))
		}
	}
	crowd = append(crowd, s.start(t))
	effects := (version - 1) * 5
	s.await(t, effects)
	testkit.Until(t, func() bool { return s.committed(t) == s.sent })
	for _, p := range crowd {
		end(t, p)
	}
	for _, p := range append(gone, crowd...) {
		duplicates += p.Count("duplicate")
	}
	owners := s.count(t, `select count(distinct pid) from ledger where consumer = $1`)
	t.Logf("%d events, %d members at work, %d killed, %d redeliveries skipped", effects, owners, kills, duplicates)
	require.Greater(t, owners, 2, "partitions have moved")
	require.Positive(t, kills)
	require.Positive(t, duplicates, "a killed member's events came again")
	s.requireOnceInOrder(t, effects)
	require.Zero(t, s.count(t, `select count(*) from dead_letter where consumer = $1`))
}
