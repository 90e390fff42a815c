package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// logged returns the topic's events, each once, and the keys whose versions are out of order. It fails where a version
// is two events, or an event has two versions.
func (h *stack) logged(t *testing.T, topic string) (events map[string]keyVersion, unordered []string) {
	t.Helper()
	events = map[string]keyVersion{}
	versions := map[keyVersion]string{}
	next, last := map[string]int64{}, map[string]int64{}
	for _, record := range kafkatest.ReadAll(t, h.brokers, topic, 0) {
		id, is := read(t, record)
		if known, again := events[id]; again {
			require.Equal(t, known, is, "event %s has two versions", id)
		} else {
			require.Empty(t, versions[is], "two events of %s are %v, the second at %d/%d", topic, is,
				record.Partition, record.Offset)
		}
		events[id], versions[is], last[is.key] = is, id, max(last[is.key], is.version)
		if is.version == next[is.key]+1 {
			next[is.key]++
		}
	}
	for key, version := range last {
		if next[key] < version {
			unordered = append(unordered, fmt.Sprintf("%s has version %d, but not all up to it in order: %d", key, version,
				next[key]))
		}
	}
	return events, unordered
}

func read(t *testing.T, record *sarama.ConsumerMessage) (id string, is keyVersion) {
	t.Helper()
	headers := headersIn(record)
	version, err := strconv.ParseInt(headers["ce_aggregateversion"], 10, 64)
	require.NoError(t, err)
	return headers["ce_id"], keyVersion{string(record.Key), version}
}

const selectSaid = `
select event_id::text, key, version from outbox where topic = $1
union all select event_id, key, version from outbox_lost where topic = $1`

// requireWhole requires each event of the outboxes on the log, one effect of each in both services, and for each person
// at most that many mails.
func (h *stack) requireWhole(t *testing.T, mails int) {
	t.Helper()
	h.awaitRecorded(t)
	h.awaitReleased(t)
	users := h.requireOnLog(t, h.customerDB, contract.TopicUsers)
	var missing []string
	within(t, func() bool {
		missing = h.missing(t, users)
		return len(missing) == 0
	})
	require.Empty(t, missing[:min(len(missing), 10)], "%d of %d events: effects are missing", len(missing), len(users))
	h.requireMails(t, mails)
	h.awaitRecorded(t)
	h.awaitReleased(t)
	h.awaitHealed(t)
	h.requireOnLog(t, h.notificationDB, contract.TopicMails)
	for _, db := range []*pgxpool.Pool{h.customerDB, h.notificationDB} {
		require.Zero(t, count(t, db, `select count(*) from dead_letter where state = 'waiting'`), "an effect twice, or a gap")
	}
	h.judge(t)
}

// awaitReleased waits for parked keys. A broker without breath parks many, and an attempt that takes long is repeated
// after nine times as long.
func (h *stack) awaitReleased(t *testing.T) {
	t.Helper()
	for _, db := range []*pgxpool.Pool{h.customerDB, h.notificationDB} {
		testkit.Until(t, func() bool { return count(t, db, `select count(*) from outbox_parked`) == 0 },
			"parked keys are never sent")
	}
}

func (h *stack) awaitHealed(t *testing.T) {
	t.Helper()
	for _, db := range []*pgxpool.Pool{h.customerDB, h.notificationDB} {
		testkit.Until(t, func() bool {
			return count(t, db, `select count(*) from outbox_cursor, jsonb_each(ends) where value ? 'from'`) == 0
		}, "the log is never whole again")
	}
}

func (h *stack) requireOnLog(t *testing.T, db *pgxpool.Pool, topic string) map[string]keyVersion {
	t.Helper()
	var want, found map[string]keyVersion
	var unordered []string
	within(t, func() bool {
		want = h.rows(t, db, topic)
		found, unordered = h.logged(t, topic)
		return len(without(want, found)) == 0 && len(unordered) == 0
	})
	require.Empty(t, without(want, found), "rows of %s that the log does not have: it has %d of %d", topic,
		len(found), len(want))
	require.Empty(t, unordered, topic)
	require.Empty(t, without(found, want), "records of %s that the database does not know", topic)
	return found
}

func (h *stack) rows(t *testing.T, db *pgxpool.Pool, topic string) map[string]keyVersion {
	t.Helper()
	events := map[string]keyVersion{}
	rows, err := db.Query(t.Context(), selectSaid, topic)
	require.NoError(t, err)
	var id string
	var is keyVersion
	_, err = pgx.ForEachRow(rows, []any{&id, &is.key, &is.version}, func() error {
		events[id] = is
		return nil
	})
	require.NoError(t, err)
	return events
}

// within gives up early, because the list of missing things then helps more than a failed condition.
func within(t *testing.T, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(testkit.WaitLimit * 3 / 4)
	testkit.Until(t, func() bool { return condition() || time.Now().After(deadline) })
}

func without(one, other map[string]keyVersion) (list []string) {
	for id, is := range one {
		if other[id] != is && len(list) < 10 {
			list = append(list, fmt.Sprintf("%s: %v, there %v", id, is, other[id]))
		}
	}
	return list
}

func (h *stack) missing(t *testing.T, users map[string]keyVersion) (list []string) {
	t.Helper()
	last := map[string]int64{}
	for _, event := range users {
		last[event.key] = max(last[event.key], event.version)
	}
	profiles := numbers(t, h.customerDB, `select user_id::text, version from profile`)
	contacts := numbers(t, h.notificationDB, `select user_id::text, version from contact`)
	mails := numbers(t, h.notificationDB, `select user_id::text, count(*) from mail join lease using (event_id)
		where state in ('done', 'uncertain') group by 1`)
	sent := numbers(t, h.customerDB, `select user_id::text, 1 from verification_mail`)
	maps.Copy(sent, h.uncertain(t))
	for _, key := range slices.Sorted(maps.Keys(last)) {
		got := [...]int64{profiles[key], contacts[key], mails[key], sent[key]}
		if want := [...]int64{last[key], last[key], 1, 1}; got != want {
			list = append(list, fmt.Sprintf("%s: profile, contact, mails done and noted are at %v, not %v", key, got, want))
		}
	}
	return list
}

// uncertain returns the people whose mail the server may have sent before it went.
func (h *stack) uncertain(t *testing.T) map[string]int64 {
	t.Helper()
	return numbers(t, h.notificationDB, `select user_id::text, 1 from mail join lease using (event_id)
		where state = 'uncertain'`)
}

func numbers(t *testing.T, db *pgxpool.Pool, sql string) map[string]int64 {
	t.Helper()
	rows, err := db.Query(t.Context(), sql)
	require.NoError(t, err)
	got := map[string]int64{}
	var name string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error {
		got[name] = n
		return nil
	})
	require.NoError(t, err)
	return got
}

func (h *stack) requireMails(t *testing.T, each int) {
	t.Helper()
	got := map[string]int{}
	for _, mail := range h.box.Messages() {
		got[mail.To[0]]++
	}
	if each == 1 {
		require.Empty(t, h.uncertain(t))
	}
	for email := range numbers(t, h.notificationDB, `select email, 1 from contact join mail using (user_id)
		join lease using (event_id) where state = 'done'`) {
		require.GreaterOrEqual(t, got[email], 1, "%s has no mail", email)
		require.LessOrEqual(t, got[email], each, "%s has its mail again", email)
	}
}
