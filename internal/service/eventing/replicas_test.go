//go:build faults

package eventing_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// The other replica continues the count.
func TestAPoisonRecordIsFoundByTwoReplicas(t *testing.T) {
	t.Parallel()
	pool := newLedger(t)
	for name, inPlace := range map[string]bool{"restarted in place": true, "taken over in turn": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const records, most = 60, 6
			// A stop waits for the rebalance that the last death began.
			s := newStage(t, pool, kafkatest.Brokers(t),
				"KAFKA_SESSION_TIMEOUT=3s", "KAFKA_TOPIC_PARTITIONS=3", "INBOX_BATCH=4",
				"INBOX_MAX_ATTEMPTS=3")
			s.member.Poison = "key-2/8"
			s.send(counted(1, records)...)
			start := func(i int) *crashtest.Process {
				replica := s.member
				replica.Environ = append(slices.Clip(replica.Environ),
					fmt.Sprintf("KAFKA_INSTANCE_ID=replica-%d", i))
				return crashtest.Start(t, replica)
			}
			replicas := []*crashtest.Process{start(0), start(1)}
			behind := records/5 - 8
			done := func() bool {
				return s.effects(t) == records-1-behind && s.count(t, `select count(*) from dead_letter
					where consumer = $1`) == 1+behind && s.committed(t) == s.sent
			}
			deaths, dead := 0, -1
			testkit.Until(t, func() bool {
				for i, p := range replicas {
					if i == dead {
						continue
					}
					select {
					case <-p.Done():
						require.EqualError(t, p.Wait(t), crashtest.Killed)
						deaths++
						again := i
						if !inPlace {
							again, dead = dead, i
						}
						if again >= 0 {
							replicas[again] = start(again)
						}
					default:
					}
				}
				return done()
			})
			require.LessOrEqual(t, deaths, most)
			for i, p := range replicas {
				if i != dead {
					end(t, p)
				}
			}
			require.Equal(t, 1, s.count(t, `select count(*) from dead_letter
				where consumer = $1 and code = 'process_died' and event_id = 'key-2/8'`))
			s.requireOnceInOrder(t, records-1-behind)
			require.Zero(t, s.count(t, `select count(*) from inbox_attempt where consumer = $1`))
		})
	}
}
