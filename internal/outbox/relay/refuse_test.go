package relay

import (
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/test/outboxtest"
)

func (w *world) refusal() string {
	w.Helper()
	return columnOf[string](w, w.pool, `select coalesce(refused, '') from outbox_cursor`)[0]
}

func (w *world) requireRefused(code string) {
	w.Helper()
	before := w.log.end(0)
	w.settle()
	refused := w.refusal()
	require.True(w, strings.HasPrefix(refused, code+": "), refused)
	require.Equal(w, before, w.log.end(0), "nothing is published")
	w.produce("z")
	require.Equal(w, before, w.log.end(0), "nothing is published")
	w.exec(`update outbox_cursor set confirmed = refused where refused like $1 || ':%'`, code)
	w.settle()
	require.Zero(w, w.count(`select count(*) from outbox_cursor where refused is not null or confirmed is not null`))
}

func TestOldUnknownEventsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.leadAndSettle()
	w.backUp("backup")
	w.log.clock = w.log.clock.Add(-time.Hour)
	w.produce("a")
	w.goBack("backup")
	w.lead()
	w.requireRefused("events_unknown")
	require.Equal(t, int64(1), w.count(`select count(*) from outbox_lost`))
	require.InDelta(t, 1, testutil.ToFloat64(w.metrics.lostEvents), 0)
	w.requireWhole()
}

// Records of several partitions may have the same time, and partitions answer in any order.
func TestARefusalKeepsItsTextUntilItIsConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.cfg.HealWithin = time.Nanosecond
	w.leadAndSettle()
	w.backUp("backup")
	w.log.tick = 0
	w.produce("a", "b", "c", "d")
	w.goBack("backup")
	w.leadAndSettle()
	first := w.refusal()
	for range 8 {
		w.settle()
		require.Equal(t, first, w.refusal())
	}
	w.requireRefused("events_unknown")
	w.requireWhole()
}

// A look at the partition may change its keys' versions.
func TestAPartitionThatCannotBeLookedAtHoldsItsKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.cfg.patience = time.Nanosecond
	w.cfg.parkedRetryMax = time.Millisecond
	w.leadAndSettle()
	w.backUp("backup")
	w.produce("a", "b")
	w.consumer.consume()
	w.goBack("backup")
	w.add("a", "b")
	w.log.asked = silent(0)
	w.lead()
	w.await(func() bool { return w.log.end(1) >= 3 })
	require.Equal(t, int64(1), w.log.end(0))
	require.Equal(t, int64(1), w.count(`select count(*) from outbox_held where key = 'a'`))
	w.add("a") // a crash must not forget that the page was not sent
	n, err := w.poll(t.Context())
	require.NoError(t, err)
	next := w.next(n)
	page, _, err := w.read(t.Context(), pageSQL, next.position, next.after.text, next.text)
	require.NoError(t, err)
	settled, _, err := w.readyOrPark(t.Context(), page)
	require.NoError(t, err)
	require.Len(t, settled.held, 1, "it is held with the page")
	w.log.asked = nil
	w.await(func() bool { return w.count(`select count(*) from outbox_held`) == 0 })
	w.settle()
	require.Equal(t, int64(2), w.count(`select count(*) from outbox where version = 2`))
	require.Equal(t, int64(1), w.count(`select count(*) from outbox where version = 3`))
	w.requireWhole()
}

func TestAMissingVersionIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.leadAndSettle()
	w.lose("a", "a")
	w.log.records[0] = w.log.records[0][1:] // version 1 is nowhere
	w.log.records[0][0].SetContext(event.WithOrigin(t.Context(), event.Origin{Topic: testTopic, Time: time.Now()}))
	w.lead()
	w.requireRefused("versions_missing")
	require.Equal(t, int64(2), w.count(`select version from outbox_key where key = 'a'`))
}

func TestALogThatCannotBePlacedIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.lead()
	w.produce("a", "b")
	w.exec(`delete from outbox_point`) // as dropping a table partition does
	w.log.cut(0, 0)
	w.log.cut(1, 0)
	w.lead()
	w.requireRefused("log_unplaceable") // one confirmation for all partitions
	w.requireWhole()
}

func TestExpiredRecordsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.lead()
	w.produce("a")
	w.backUp("backup")
	w.produce("b", "c", "d")
	w.consumer.consume()
	w.goBack("backup")
	w.log.expire(0, 3)
	w.lead()
	w.requireRefused("records_expired")
}

func TestAPointOutlivesItsRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.lead()
	w.produce("a", "b")
	w.consumer.consume()
	w.log.expire(0, 2)
	w.lead()
	w.produce("a")
	require.Equal(t, int64(3), w.log.end(0), "nothing is sent again")
	w.requireWhole()
}

func TestAForeignRecordIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.lead()
	w.produce("a")
	foreign := newEvent("a")
	foreign.ID, foreign.Version = "foreign", 9
	w.log.append(testTopic, foreign.Message())
	w.settle()
	w.produce("a")
	require.Zero(t, w.count(`select count(*) from outbox_lost`))
	require.Equal(t, int64(3), w.log.end(0))
}

func TestAnotherProducerHoldsUpItsPartitionOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.cfg.patience, w.cfg.parkedRetryMax = time.Nanosecond, time.Millisecond
	w.lead()
	w.produce("a", "b")
	w.log.before = func(m *message.Message) error {
		if m.Metadata[event.KeyMetadata] == "a" {
			w.log.append(testTopic, newEvent("a").Message())
		}
		return nil
	}
	w.add("a", "b", "a")
	w.await(func() bool { return w.count(`select count(*) from outbox_held`) == 2 && w.log.end(1) == 2 })
	w.produce("b")
	require.Equal(t, int64(3), w.log.end(1))
	w.log.before = nil
	w.await(func() bool { return w.count(`select count(*) from outbox_held`) == 0 })
	w.settle()
	w.requireWhole()
}

// An older edition's database has no ends.
func TestTheFirstLeaderTakesTheEndsAsTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.add("a")
	w.exec(`update outbox_cursor set ends = null; `)
	w.exec(`delete from outbox_point`)
	for range 5 { // published by the older edition
		w.log.append(testTopic, newEvent("a").Message())
	}
	w.cfg.landWithin = time.Hour
	w.lead()
	_, err := w.round(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(5), w.log.end(0), "it waits for the records of an older leader")
	w.ends.landed = time.Time{}
	w.log.asked = silent(1)
	_, err = w.round(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(1), w.count(`select count(*) from outbox_cursor where ends is null`), "of all partitions")
	w.log.asked = nil
	w.await(func() bool { return w.log.end(0) == 6 })
	w.settle()
	require.Equal(t, int64(6), w.log.end(0))
	require.Zero(t, w.count(`select count(*) from outbox_lost`))
	require.Equal(t, int64(1), w.count(`select count(*) from outbox_point where position = 0 and (ends->'`+
		testTopic+`/0'->>'end')::bigint = 5`))
}

// The lost row cannot be published again: retention dropped it.
func TestALogThatLosesItsPointsDuringAHealIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.lead()
	for _, key := range []string{"a", "b", "c"} {
		w.produce(key)
	}
	first, _ := event.OriginFrom(w.log.records[0][0].Context())
	w.exec(`delete from outbox where position = 1`)
	w.exec(`delete from outbox_point`)
	w.exec(`insert into outbox_point (position, ends) values (1, jsonb_build_object($1::text,
		jsonb_build_object('end', 1, 'time', $2::bigint)))`, testTopic+"/0", first.Time.UnixMilli())
	w.log.cut(0, 2)
	w.log.after = func(m *message.Message) error {
		if m.Metadata[event.KeyMetadata] == "c" {
			w.log.cut(0, 0)
			w.log.after = nil
		}
		return nil
	}
	w.settle()
	refused := w.refusal()
	require.True(t, strings.HasPrefix(refused, RefusedUnplaceable+": "), refused)
}

func TestARelayWaitsInADatabaseThatWentBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.leadAndSettle()
	w.add("a")
	w.backUp("backup")
	w.settle()
	late := w.log.records[0][0]
	w.goBack("backup")
	w.exec(`delete from outbox; update outbox_key set version = 0;
		update outbox_cursor set looked_at = 'another/00000001'`)
	w.log.cut(0, 0)
	w.cfg.landWithin = time.Hour
	w.add("a")
	w.lead()
	_, err := w.round(t.Context())
	require.NoError(t, err)
	require.Zero(t, w.log.end(0), "nothing is published")
	require.NoError(t, w.Healthy(t.Context()))
	w.log.append(testTopic, late)
	w.ends.landed = time.Time{}
	w.await(func() bool { return w.count(`select count(*) from outbox_lost`) == 1 })
	w.settle()
	require.Equal(t, int64(2), w.count(`select version from outbox`))
	w.requireWhole()
}

func TestALogThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.log.down = errNotSent
	w.cfg.patience, w.cfg.parkedRetryMax = time.Nanosecond, time.Millisecond
	w.lead()
	w.add("a", "b")
	w.await(func() bool { return w.count(`select count(*) from outbox_held`) == 2 })
	require.Zero(t, w.log.end(0))
	w.log.down = nil
	w.await(func() bool { return w.count(`select count(*) from outbox_held`) == 0 })
	w.requireWhole()
}

func TestAPartitionThatTakesNothingHoldsUpNoOtherHeal(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"rows": "a", "a lost event": "c"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			w.cfg.patience, w.cfg.parkedRetryMax = time.Nanosecond, time.Millisecond
			w.lead()
			w.produce("a", "b", "c", "d")
			w.lose("c")
			w.leadAndSettle()
			w.log.cut(0, 0)
			w.log.cut(1, 0)
			w.log.before = failing(event.KeyMetadata, key, errNotSent)
			w.lead()
			w.add("a", "b", "c", "d")
			w.await(func() bool { return w.count(`select count(*) from outbox_held`) == 2 && w.log.end(1) >= 4 })
			require.Equal(t, int64(1), w.count(ill))
			w.add("b")
			w.await(func() bool { return w.count(`select count(*) from outbox_held`) == 2 && w.log.end(1) >= 5 })
			w.log.before = nil
			w.await(func() bool { return w.count(`select count(*) from outbox_held`) == 0 })
			w.settle()
			w.requireWhole()
		})
	}
}

func TestATablePartitionIsDroppedBehindAPoint(t *testing.T) {
	t.Parallel()
	g := newMemoryLog(1)
	w := &world{
		TB: t, outbox: newOutbox(t), pool: newDatabase(t, outboxtest.SmallPartitions), log: g,
		consumer: newStrictConsumer(g),
	}
	w.cfg = testRelayConfig(t, w.pool, g)
	w.cfg.PartitionSize, w.cfg.pointEvery = 8, time.Hour
	w.cfg.maintainEvery = time.Nanosecond
	w.lead()
	w.pointAt()
	w.await(func() bool {
		w.add("a")
		return w.publishedTo() >= 17
	})
	w.settle()
	w.exec(`update outbox_partition set published_at = '2000-01-01'`)
	w.settle()
	require.Equal(t, int64(1), w.count(`select min(position) from outbox`))
	w.await(func() bool {
		w.add("a")
		w.ends.pointAt = time.Time{}
		w.exec(`update outbox_partition set published_at = '2000-01-01'`)
		return w.count(`select min(position) from outbox`) > 8
	})
	require.Zero(t, w.count(`select count(*) from outbox_point where position < 8`))
}

func TestASilentPartitionEndsNoRefusal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.cfg.HealWithin = time.Nanosecond
	w.leadAndSettle()
	w.lose("a")
	w.leadAndSettle()
	const refused = `select count(*) from outbox_cursor where refused like 'events_unknown:%'`
	require.Equal(t, int64(1), w.count(refused))

	w.log.asked = silent(0)
	w.produce("b")
	w.leadAndSettle()
	require.Equal(t, int64(1), w.count(refused))
	require.Zero(t, w.log.end(1), "nothing is published")

	w.log.asked = nil
	w.requireRefused("events_unknown")
	w.requireWhole()
}

func TestARefusalEndsWithItsCause(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.lead()
	w.produce("a", "b")
	w.exec(`delete from outbox_point`)
	records := w.log.records[0]
	w.log.cut(0, 0)
	w.leadAndSettle()
	const refused = `select count(*) from outbox_cursor where refused is not null`
	require.Equal(t, int64(1), w.count(refused))
	w.log.records[0] = records // the volume is back
	w.leadAndSettle()
	require.Zero(t, w.count(refused))
	w.requireWhole()
}
