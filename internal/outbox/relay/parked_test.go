package relay

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/test/testkit"
)

func refuseKeys(err error, keys ...string) func(int, string, []*message.Message) error {
	return func(_ int, _ string, msgs []*message.Message) error {
		failed := map[int]error{}
		for i, m := range msgs {
			for _, key := range keys {
				if m.Metadata[event.KeyMetadata] == key {
					failed[i] = err
				}
			}
		}
		if len(failed) == 0 {
			return nil
		}
		return &partialError{Failed: failed}
	}
}

func awaitParked(t testing.TB, pool *pgxpool.Pool, held int64) ParkedKey {
	t.Helper()
	var keys []ParkedKey
	testkit.Until(t, func() bool {
		var err error
		keys, err = Parked(t.Context(), pool, 10)
		return err == nil && len(keys) == 1 && keys[0].Held == held
	}, "one parked key with %d held rows", held)
	return keys[0]
}

func TestAnUnpublishableRecordParksItsKeyAlone(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	l.Follow(refuseKeys(&permanentError{Reason: "too large"}, "bad"))
	commit(t, o, pool, newEvent("bad"), newEvent("good"), newEvent("bad"), newEvent("good"))
	cfg := testRelayConfig(t, pool, l)
	r := startRelay(t, cfg)
	l.AwaitDistinct(t, 2)
	key := awaitParked(t, pool, 2)
	require.Equal(t, ParkedKey{
		Topic: testTopic, Key: "bad", Reason: "too large", Permanent: true, ParkedAt: key.ParkedAt,
		Held: 2, Position: 1, Attempts: key.Attempts, RetryAt: key.RetryAt, // the leader retries
	}, key)
	require.Positive(t, key.Attempts)

	commit(t, o, pool, newEvent("bad"), newEvent("good"))
	l.AwaitDistinct(t, 3)
	awaitParked(t, pool, 3)
	awaitNumber(t, pool, 1, `select (win is null and head = 6)::int::bigint from outbox_cursor`)

	r.stop()
	startRelay(t, cfg)
	commit(t, o, pool, newEvent("bad"), newEvent("good"))
	l.AwaitDistinct(t, 4)
	awaitParked(t, pool, 4)

	require.NoError(t, Release(t.Context(), pool, testTopic, "bad"), "in vain: it fails again")
	testkit.Until(t, func() bool { return awaitParked(t, pool, 4).Attempts > 1 })

	l.Follow(nil)
	require.NoError(t, Release(t.Context(), pool, testTopic, "bad"))
	l.AwaitDistinct(t, 8)
	commit(t, o, pool, newEvent("bad"))
	wire := l.AwaitDistinct(t, 9)
	requireAll(t, pool, wire)
	testkit.Until(t, func() bool {
		return number(t, pool, `select count(*) from outbox_parked`)+number(t, pool, `select count(*) from outbox_held`) == 0
	})
	require.ErrorIs(t, Release(t.Context(), pool, testTopic, "bad"), ErrNotParked)
}

func TestDiscardGivesUpOneRecord(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	added := commit(t, o, pool, newEvent("bad"), newEvent("bad"), newEvent("bad"))
	l.Follow(func(_ int, _ string, msgs []*message.Message) error {
		for i, m := range msgs {
			if m.UUID == added[0].ID {
				return &partialError{Failed: map[int]error{i: &permanentError{Reason: "poison"}}}
			}
		}
		return nil
	})
	startRelay(t, testRelayConfig(t, pool, l))
	awaitParked(t, pool, 3)
	require.ErrorIs(t, Discard(t.Context(), pool, testTopic, "bad", 77), ErrNotParked)
	require.NoError(t, Discard(t.Context(), pool, testTopic, "bad", added[0].Position))
	wire := l.Await(t, "the rest of the key", func(wire []entry) bool { return len(wire) == 2 })
	require.Equal(t, []int64{2, 3}, []int64{wire[0].Version, wire[1].Version})

	awaitNumber(t, pool, 0, `select count(*) from outbox_held`)
	n, err := Republish(t.Context(), pool, contextLedger{ledger: l}, Selection{From: 1})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	states := columnOf[string](t, pool, `select `+State+` from outbox o, outbox_cursor c order by o.position`)
	require.Equal(t, []string{"discarded", "published", "published"}, states)
}

func TestDiscardBesideTheLeader(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	added := commit(t, o, pool, newEvent("k"), newEvent("k"))
	parkAll(t, pool)
	leader := begin(t, pool) // the first is out, the second failed; see leader.releaseTaken
	parkedKey := key{Topic: testTopic, Key: "k"}
	failed := []parking{{key: parkedKey, reason: "down", attempts: 2}}
	batch := &pgx.Batch{}
	queueParked(batch, failed)
	require.NoError(t, leader.SendBatch(t.Context(), batch).Close())
	var group errgroup.Group
	group.Go(func() error { return Discard(deadline(t), pool, testTopic, "k", added[0].Position) })
	awaitNumber(t, pool, 1, `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock' and query like '%outbox_held%'`)
	taken := records("k")
	taken[0].Topic, taken[0].Position = testTopic, added[0].Position
	batch = &pgx.Batch{}
	queueRows(batch, unholdSQL, taken)
	require.NoError(t, leader.SendBatch(t.Context(), batch).Close())
	require.NoError(t, leader.Commit(t.Context()))
	require.ErrorIs(t, group.Wait(), ErrNotParked, "it is published")
	require.NoError(t, Discard(t.Context(), pool, testTopic, "k", added[1].Position))
}

func TestDiscardOfTheLastRowReleasesTheKey(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	l.Follow(refuseKeys(&permanentError{Reason: "poison"}, "bad"))
	added := commit(t, o, pool, newEvent("bad"))
	startRelay(t, testRelayConfig(t, pool, l))
	awaitParked(t, pool, 1)
	l.Follow(nil)
	require.NoError(t, Discard(t.Context(), pool, testTopic, "bad", added[0].Position))
	awaitNumber(t, pool, 0, `select count(*) from outbox_parked`)
	commit(t, o, pool, newEvent("bad"))
	l.AwaitDistinct(t, 1)
}

func TestARelayIsWellWhoseBrokerOnlyRefuses(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	l.Follow(refuseKeys(errors.New("no broker"), "bad"))
	cfg := testRelayConfig(t, pool, l)
	cfg.PublishTimeout, cfg.MaxSilence = 100*time.Millisecond, 200*time.Millisecond
	r := startRelay(t, cfg)
	commit(t, o, pool, newEvent("bad"))
	testkit.Until(t, func() bool { return r.unwell(t, "no broker") })
	l.Follow(refuseKeys(&permanentError{Reason: "too large"}, "bad"))
	awaitNumber(t, pool, 1, `select count(*) from outbox_parked where permanent`)
	testkit.Until(t, func() bool { return r.Healthy(t.Context()) == nil })
}

func TestARelayIsWellThatOnlyHolds(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.MaxSilence = time.Minute
	l := newLeader(t, cfg)
	l.parked[key{Topic: testTopic, Key: "bad"}] = 1
	l.health.set(stateStarting, time.Now())
	for _, down := range []bool{false, true} {
		if down {
			l.failedAt = time.Now()
		}
		l.health.wellAt = time.Now().Add(-time.Hour)
		require.Error(t, l.Healthy(t.Context()))
		commit(t, o, pool, newEvent("bad"))
		for result := published; result != resting; {
			var err error
			result, err = l.round(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, down, l.Healthy(t.Context()) != nil)
	}
}

func TestARelayIsWellThatSendsWhatWasHeld(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	addMany(t, o, pool, 30, 1)
	parkAll(t, pool)
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.MaxSilence = time.Minute
	l := newLeader(t, cfg)
	l.health.set(stateStarting, time.Now())
	l.health.wellAt = time.Now().Add(-time.Hour)
	result, err := l.flushParked(t.Context())
	require.NoError(t, err)
	require.Equal(t, draining, result)
	require.NoError(t, l.Healthy(t.Context()))
}

func TestARefusingPartitionHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	l.Follow(refuseKeys(errors.New("no leader for partition"), "k1", "k4"))
	startRelay(t, testRelayConfig(t, pool, l))
	for i := range 10 {
		addMany(t, o, pool, 60, 6)
		l.Await(t, "the other keys", func(wire []entry) bool { return distinct(wire) >= 40*(i+1) })
	}
	wire, _ := l.Snapshot()
	require.Equal(t, 400, distinct(wire))
	require.Equal(t, int64(2), number(t, pool, `select count(*) from outbox_parked where not permanent`))
	l.Follow(nil)
	requireAll(t, pool, l.AwaitDistinct(t, 600))
}

func TestParkedKeysHoldUpTheOthersForATenthOfTheTime(t *testing.T) {
	t.Parallel()
	l := &leader{Relay: &Relay{cfg: Config{parkedRetryMax: 15 * time.Second}}}
	require.Equal(t, flushEvery, l.flushPause(time.Minute, true))
	require.Equal(t, flushEvery, l.flushPause(time.Millisecond, false))
	require.Equal(t, 90*time.Second, l.flushPause(10*time.Second, false))
}

// A partition answers only at the call's timeout, and its keys are always due.
func TestASlowlyFailingPartitionDelaysTheOthersLittle(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.parkedRetryMax, cfg.attempts = 2*time.Millisecond, 1
	const slow = 100 * time.Millisecond
	var attempts atomic.Int64
	l.Follow(func(_ int, _ string, msgs []*message.Message) error {
		for i, m := range msgs {
			if m.Metadata[event.KeyMetadata] == "slow" {
				attempts.Add(1)
				<-time.After(slow) // the publisher retries
				return &partialError{Failed: map[int]error{i: errors.New("no leader for partition")}}
			}
		}
		return nil
	})
	commit(t, o, pool, newEvent("slow"))
	startRelay(t, cfg)
	testkit.Until(t, func() bool { return attempts.Load() >= 2 })
	before, began := attempts.Load(), time.Now()
	for i := range 50 {
		commit(t, o, pool, newEvent("quick"))
		l.AwaitDistinct(t, i+1)
	}
	// One attempt may have been in progress; each pause is nine times as long as the attempt before it.
	most := 2 + int64(time.Since(began)/(10*slow))
	require.LessOrEqual(t, attempts.Load()-before, most)
	l.Follow(nil)
	requireAll(t, pool, l.AwaitDistinct(t, 51))
}

// The failed partition's keys have lower positions, more held rows than a page, and are always due.
func TestParkedKeysAreSentWhileOthersFail(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]int{"one key": 1, "many keys": 25} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, pool, broker := newOutbox(t), newDatabase(t), newLedger()
			addMany(t, o, pool, 25, down)
			commit(t, o, pool, newEvent("well"), newEvent("well"))
			parkAll(t, pool)
			broker.Follow(func(_ int, _ string, msgs []*message.Message) error {
				failed := map[int]error{}
				for i, m := range msgs {
					if m.Metadata[event.KeyMetadata] != "well" {
						failed[i] = errors.New("no leader for partition")
					}
				}
				return &partialError{Failed: failed}
			})
			l := newLeader(t, testRelayConfig(t, pool, broker))
			for range 4 {
				_, err := pool.Exec(t.Context(), `update outbox_parked set retry_at = retry_at - interval '1 h'`) // it passes
				require.NoError(t, err)
				l.flushAt = time.Time{}
				_, err = l.flushParked(t.Context())
				require.NoError(t, err)
			}
			wire, _ := broker.Snapshot()
			require.Len(t, wire, 2)
			require.Equal(t, int64(down), number(t, pool, `select count(*) from outbox_parked`))
			require.NotContains(t, l.parked, key{Topic: testTopic, Key: "well"})
		})
	}
}

// A page has several calls. The first attempts of the later ones are no repetitions.
func TestEachCallOfAPageHasItsAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.cfg.patience = time.Nanosecond
	w.leadAndSettle()
	w.add("a", "b", "c", "d", "e")
	w.callLimit = 1
	w.log.before = func(m *message.Message) error {
		if m.Metadata[event.KeyMetadata] != "e" {
			return nil
		}
		w.log.before = nil
		return errNotSent
	}
	w.settle()
	require.Zero(t, testutil.ToFloat64(w.metrics.parkings))
	w.requireWhole()
}

// An unsentError leaves its partition as it was: the next records of it can be sent.
type unsentError struct{ error }

func (unsentError) OutcomeUnknown() bool { return false }

func TestARecordBehindAnUnsentOneIsSentOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.leadAndSettle()
	w.log.before = func(*message.Message) error {
		w.log.before = nil
		return unsentError{errNotSent}
	}
	w.produce("a", "b")
	require.Equal(t, int64(2), w.log.end(0))
	w.requireWhole()
}

func TestAKeyIsParkedOnceForACall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.cfg.patience, w.cfg.attempts = time.Nanosecond, 1
	w.leadAndSettle()
	w.log.before = func(*message.Message) error { return errNotSent }
	w.add("a", "a", "b")
	w.await(func() bool { return w.count(`select count(*) from outbox_parked where attempts = 1`) == 2 })
	require.InDelta(t, 2, testutil.ToFloat64(w.metrics.parkings), 0)
}

func TestAKeyThatACallParksIsHeldInTheLaterCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.cfg.patience, w.cfg.attempts = time.Nanosecond, 1
	w.leadAndSettle()
	w.add("a", "b", "a")
	w.callLimit = 1
	w.log.before = func(m *message.Message) error {
		if m.Metadata[event.HeaderVersion] == "1" && m.Metadata[event.KeyMetadata] == "a" {
			return unsentError{errNotSent}
		}
		return nil
	}
	w.settle()
	require.Equal(t, int64(1), w.log.end(0), "only b is sent")
	require.Equal(t, int64(2), w.count(`select count(*) from outbox_held`))
	w.log.before = nil
	w.retryParked()
	w.requireWhole()
}

// A look between the attempts of a page finds that the log lost the first version. Its pass has it refused for good.
func TestAKeyThatALookParksIsHeldInThePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.lead()
	w.produce("a")
	w.add("a")
	w.log.before = func(m *message.Message) error {
		if m.Metadata[event.HeaderVersion] == "1" {
			return refusedError{errors.New("too large")}
		}
		if w.log.end(0) > 0 {
			w.log.cut(0, 0)
			return errNotSent
		}
		return nil
	}
	w.settle()
	require.Zero(t, w.log.end(0), "version 2 waits for version 1")
	require.Equal(t, int64(2), w.count(`select count(*) from outbox_held`))
	w.log.before = nil
	w.retryParked()
	w.add("a") // a heal without rows ends with the next page
	w.settle()
	w.requireOrder()
	w.requireWhole()
}

func TestAFlushReadsWhatItsLookHasHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.cfg.patience, w.cfg.attempts, w.cfg.parkedRetryMax = time.Nanosecond, 1, time.Nanosecond
	w.lead()
	tooLarge := refusedError{errors.New("too large")}
	w.log.before = failing(event.HeaderVersion, "2", tooLarge)
	w.produce("a", "a")
	require.Equal(t, int64(1), w.count(`select count(*) from outbox_held`))
	w.log.cut(0, 0)
	for _, p := range w.ends.of {
		p.doubt(p.known, true)
	}
	w.log.before, w.flushAt = failing(event.HeaderVersion, "1", tooLarge), time.Time{}
	_, err := w.flushParked(t.Context())
	require.NoError(t, err)
	require.Zero(t, w.log.end(0), "version 2 waits for version 1")
	w.log.before = nil
	w.retryParked()
	w.produce("a")
	w.requireOrder()
	w.requireWhole()
}

// A former leader's record lands within a pass. The pass ends behind the expected end, and the log loses that part.
func TestAnAcknowledgedOffsetIsExpected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.cfg.patience, w.cfg.attempts = time.Nanosecond, 1
	w.leadAndSettle()
	w.add("a")
	w.crashAt(1, false)
	w.die()
	w.lead()
	w.log.before = func(m *message.Message) error {
		if w.log.end(0) == 1 {
			w.log.append(testTopic, m)
			w.log.asked = func(int32) error { return errNotSent }
		}
		return nil
	}
	w.settle()
	require.Equal(t, int64(3), w.log.end(0))
	require.Equal(t, int64(1), w.count(`select count(*) from outbox_held`))
	w.consumer.consume()
	w.log.cut(0, 1)
	w.log.before, w.log.asked, w.flushAt = nil, nil, time.Now().Add(time.Hour)
	w.produce("b")
	w.retryParked()
	w.requireWhole()
}

func TestADiscardedEventIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.lead()
	w.add("a", "b")
	w.exec(`insert into outbox_discarded (position) select position from outbox where key = 'a'`)
	page, _, err := w.read(t.Context(), `select `+columns+` from public.outbox o where o.key = 'a' limit $1`)
	require.NoError(t, err)
	require.NoError(t, w.guarded(t.Context(), settlement{held: page}.batch(), nil))
	require.Zero(t, w.count(`select count(*) from outbox_held`), "another page with the event is under way")
	w.settle()
	require.Equal(t, int64(1), w.log.end(0))
}

func TestTheLeaderLocksAKeyBeforeItsRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.add("a")
	parkAll(w, w.pool)
	w.lead()
	due, _, err := w.read(t.Context(), dueSQL)
	require.NoError(t, err)
	operator := begin(t, w.pool)
	_, err = operator.Exec(t.Context(), `select from outbox_parked for update`)
	require.NoError(t, err)
	var group errgroup.Group
	group.Go(func() error { return w.releaseTaken(t.Context(), due, settlement{}) })
	testkit.Until(t, func() bool {
		return w.count(`select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`) == 1
	})
	_, err = operator.Exec(t.Context(), `set local lock_timeout = 1; delete from outbox_held`)
	require.NoError(t, err)
	require.NoError(t, operator.Commit(t.Context()))
	require.NoError(t, group.Wait())
}

func TestTheLeaderReadsFewOfManyParkedKeys(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	execSQL(t, pool, `insert into outbox_parked (topic, key, reason, permanent, retry_at)
		select 't', 'k' || n, 'down', false, now() + interval '1 h' from generate_series(1, 2000) n`)
	l := newLeader(t, testRelayConfig(t, pool, newLedger()))
	rows := make([]record, 100)
	for i := range rows {
		rows[i].Topic, rows[i].Key = "t", fmt.Sprint("k", i/2)
	}
	const explain = `explain (analyze, format json) `
	batch := &pgx.Batch{}
	queueRows(batch, explain+lockParkedSQL, rows)
	batch.Queue(explain+dueSQL, 1000)
	batch.Queue(explain + freeSQL)
	for _, query := range batch.QueuedQueries {
		query.QueryRow(func(row pgx.Row) error {
			var plans []struct{ Plan queryPlan }
			err := row.Scan(&plans)
			require.Less(t, plans[0].Plan.rows(), 1000.0, query.SQL)
			return err
		})
	}
	require.NoError(t, l.conn.SendBatch(t.Context(), batch).Close())
}

type queryPlan struct {
	Rows  float64 `json:"Actual Rows"`
	Gone  float64 `json:"Rows Removed by Filter"`
	Loops float64 `json:"Actual Loops"`
	Plans []queryPlan
}

// rows counts those of all nodes.
func (p queryPlan) rows() float64 {
	n := (p.Rows + p.Gone) * p.Loops
	for _, child := range p.Plans {
		n += child.rows()
	}
	return n
}
