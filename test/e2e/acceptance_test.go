//go:build faults

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/contract/contracttest"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// TestAcceptance has one cheap run for each test of docs/contract.md, by its numbers.
func TestAcceptance(t *testing.T) {
	parallel(t)
	for _, row := range []struct {
		name string
		test func(*testing.T)
	}{
		{"1 publisher publishes twice after a checkpoint rollback", publishedTwice},
		{"2 worker crash at four points", workerCrashes},
		{"3 projection crash at three points", projectionCrashes},
		{"4 shuffled sequence numbers", shuffledVersions},
		{"5 one id delivered to two consumers at once", deliveredToTwo},
		{"6 retry after failure up to manual intervention", failedUntilMended},
		{"7 keys that differ in case, blanks, special characters and normal forms do not collide", keysThatLookAlike},
		{"8 registry outage is explicit", registryOutage},
	} {
		t.Run(row.name, func(t *testing.T) {
			parallel(t)
			row.test(t)
		})
	}
}

func publishedTwice(t *testing.T) {
	h := newStack(t)
	databases := []*pgxpool.Pool{h.customerDB, h.notificationDB}
	for _, db := range databases {
		execute(t, db, `create table checkpoint as select * from public.outbox_cursor`)
	}
	stops := []func(){h.start(t, customerService), h.start(t, notificationService)}
	h.tell(t)
	for _, stop := range stops {
		stop()
	}
	for _, db := range databases {
		execute(t, db, `
update public.outbox_cursor c
set done = p.done, head = p.head, win = p.win, win_pos = p.win_pos, mark_x = p.mark_x,
    mark_h = p.mark_h
from checkpoint p where p.name = c.name`)
	}
	stops = []func(){h.start(t, customerService), h.start(t, notificationService)}
	users := kafkatest.ReadAll(t, h.brokers, contract.TopicUsers, 4)
	mails := kafkatest.ReadAll(t, h.brokers, contract.TopicMails, 2)
	for _, log := range [][]string{idsOf(users), idsOf(mails)} {
		slices.Sort(log)
		require.Len(t, slices.Compact(slices.Clone(log)), len(log)/2, "each event is there twice: %v", log)
	}
	h.awaitRead(t, "customer.profile", 4)
	h.awaitRead(t, "customer.mail", 2)
	h.awaitRead(t, "notification.users", 4)
	for _, stop := range stops {
		stop()
	}
	h.requireTold(t)
}

// An uncertain mail stays so: a second attempt could be a second mail.
func workerCrashes(t *testing.T) {
	h := newStack(t)
	for _, row := range []struct {
		when, point string
		mails       int
	}{
		{"right before it is recorded as done", "notification.mail.recording", 1},
		{"right after the effect", "smtp.accepted", 2},
		{"right before the effect", "smtp.submitting", 2},
		{"right after the claim", "notification.mail.claimed", 2}, // last: the next process takes it over
	} {
		h.lay(t, healthy())
		armed := h.spawn(t, notificationService, row.point)
		require.EqualError(t, armed.Wait(t), crashtest.Killed, row.when)
		require.Len(t, h.box.Messages(), row.mails, row.when)
		h.endMailLeases(t)
	}
	stop := h.start(t, notificationService)
	for state, want := range map[lease.State]int{lease.Uncertain: 3, lease.Done: 1} {
		sql := fmt.Sprintf(`select count(*) from lease where state = '%s'`, state)
		testkit.Until(t, func() bool { return count(t, h.notificationDB, sql) == want }, state)
	}
	stop()
	require.Len(t, h.box.Messages(), 3, "never a second mail")
}

func projectionCrashes(t *testing.T) {
	h := newStack(t)
	person := healthy()
	h.lay(t, person)
	for _, row := range []struct {
		when, point string
		profile     bool
	}{
		{"right before the write", "inbox.customer.profile.handling", false},
		{"right after the write", "inbox.customer.profile.handled", false},
		{"right before the offset is committed", "inbox.customer.profile.committed", true},
	} {
		armed := h.spawn(t, customerService, row.point)
		require.EqualError(t, armed.Wait(t), crashtest.Killed, row.when)
		require.Equal(t, row.profile, h.hasProfile(t, person.id()), row.when)
	}
	stop := h.start(t, customerService)
	h.awaitRead(t, "customer.profile", 1)
	stop()
	require.True(t, h.hasProfile(t, person.id()))
	require.Equal(t, 1, count(t, h.customerDB, `select count(*) from inbox where consumer = 'customer.profile'`))
	require.Zero(t, count(t, h.customerDB, `select count(*) from dead_letter`))
}

func shuffledVersions(t *testing.T) {
	h := newStack(t)
	ada := domain.UserID(healthy().id())
	first, again := life(t, ada), life(t, ada)
	h.publish(t, first[3], first[1], first[4], first[2], again[2], again[4], again[3])
	stop := h.start(t, customerService)
	h.awaitRead(t, "customer.profile", 7)
	testkit.Until(t, func() bool {
		return count(t, h.customerDB, `select count(*) from dead_letter where state = 'waiting'`) == 0
	}, "the parked events are resumed")
	stop()
	require.Equal(t, 1, count(t, h.customerDB,
		`select count(*) from profile where name = 'Lovelace' and status = 'verified' and version = 4`))
	require.Equal(t, 4, count(t, h.customerDB, `select count(*) from inbox where consumer = 'customer.profile'`),
		"one event of each version is applied, the others are stale")
}

// A table refuses a contact and the mail server refuses a mail, until the operator acts.
func failedUntilMended(t *testing.T) {
	h := newStack(t)
	h.notificationEnv = append(h.notificationEnv,
		"INBOX_MAX_ATTEMPTS=3", "MAIL_MAX_ATTEMPTS=3", "MAIL_RETRY_MIN=10ms", "MAIL_RETRY_MAX=40ms")
	server := startPost(t)
	server.isFull.Store(true)
	h.notificationEnv = append(h.notificationEnv, "SMTP_ADDR="+server.addr)
	execute(t, h.notificationDB, `create function refuse() returns trigger language plpgsql
		as $$ begin raise exception 'not now'; end $$`)
	execute(t, h.notificationDB, `create trigger refuse before insert on contact execute function refuse()`)
	ada := domain.UserID(healthy().id())
	events := life(t, ada)
	h.publish(t, events[1], events[2])
	h.start(t, notificationService)
	h.awaitRead(t, "notification.users", 2)
	require.Equal(t, 1, count(t, h.notificationDB, `select count(*) from dead_letter where state = 'waiting' and
		class = 'unknown' and attempts = 3 and version = 1 and holds`), "given up after three attempts")
	require.Equal(t, 1, count(t, h.notificationDB, `select count(*) from dead_letter where state = 'waiting' and
		class = 'parked' and version = 2`), "what comes after it waits")
	require.Zero(t, count(t, h.notificationDB, `select count(*) from contact`))

	execute(t, h.notificationDB, `drop trigger refuse on contact`)
	execute(t, h.notificationDB, statementOf(t, "Replay a dead letter", ":'by'", "'ada'", ":'reason'", "'mended'",
		":id", h.text(t, `select id::text from dead_letter where version = 1`)))
	testkit.Until(t, func() bool {
		return count(t, h.notificationDB, `select count(*) from contact where name = 'Countess' and version = 2`) == 1
	}, "in order, once")
	require.Zero(t, count(t, h.notificationDB, `select count(*) from dead_letter where state <> 'replayed'`))
	const failed = `select count(*) from lease where state = 'failed' and attempts = 3`
	testkit.Until(t, func() bool { return count(t, h.notificationDB, failed) == 1 },
		"the mail is given up after three attempts")
	require.Zero(t, server.taken.Load())
	server.isFull.Store(false)
	execute(t, h.notificationDB, statementOf(t, "Send a mail again", ":'by'", "'ada'", ":'reason'", "'mended'",
		":'id'", "'"+h.text(t, `select id::text from mail`)+"'"))
	testkit.Until(t, func() bool {
		return count(t, h.notificationDB, `select count(*) from lease where state = 'done'`) == 1
	}, "the mail that was put back is sent")
	require.EqualValues(t, 1, server.taken.Load())
	require.Equal(t, 2, count(t, h.notificationDB,
		`select count(distinct verb) from operator_action where operator = 'ada'`), "replay and retry")
}

func registryOutage(t *testing.T) {
	db, gone := durableDatabase(t)
	h := newStackOn(t, ownBrokers(t), db, "INBOX_MAX_ATTEMPTS=1", "KAFKA_SESSION_TIMEOUT=6s")
	customer := h.watch(t, customerService)
	before, meanwhile := healthy(), healthy()
	h.lay(t, before)
	testkit.Until(t, func() bool { return h.hasProfile(t, before.id()) })
	gone.down()
	h.lay(t, meanwhile)
	var got readiness
	testkit.Until(t, func() bool {
		got = customer.readyz(t)
		return got.code == http.StatusServiceUnavailable && slices.ContainsFunc(got.report.Checks,
			func(c service.CheckResult) bool { return c.Name == gone.name && c.Status == service.StatusFailing })
	}, "readiness names the database: %+v", &got)
	answer, err := h.client().try(t.Context(), http.MethodPost, "/v1/signups", signUpBody, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, answer.Status, answer.raw)
	gone.up()
	h.customerDB.Reset() // the test's own connections are of the server that went
	testkit.Until(t, func() bool { return customer.readyz(t).code == http.StatusOK })
	h.awaitRead(t, "customer.profile", 2)
	require.True(t, h.hasProfile(t, meanwhile.id()))
	require.Zero(t, count(t, h.customerDB, `select count(*) from dead_letter`), "an outage is no event's fault")
	require.True(t, slices.ContainsFunc(customer.log.lines(), func(l line) bool {
		return l.Msg == "dependency is down" && l.Dependency == gone.name
	}), "the log says so")
}

// life has the events of a person by their versions.
func life(t *testing.T, id domain.UserID) map[int64]*message.Message {
	t.Helper()
	at := time.Now().UTC()
	events := map[int64]event.Ruled{
		1: domain.UserRegistered{UserID: id, Email: domain.Email(id + "@example.org"), Name: "Ada", RegisteredAt: at},
		2: domain.UserRenamed{UserID: id, Name: "Countess", RenamedAt: at},
		3: domain.EmailVerified{UserID: id, Email: domain.Email(id + "@example.org"), VerifiedAt: at},
		4: domain.UserRenamed{UserID: id, Name: "Lovelace", RenamedAt: at},
	}
	life := make(map[int64]*message.Message, len(events))
	for version, e := range events {
		life[version] = contracttest.Event(t, e, version).Message()
	}
	return life
}

// awaitRead counts records with any outcome, once the group has committed them.
func (h *stack) awaitRead(t *testing.T, consumer string, records int64) {
	t.Helper()
	at := slices.IndexFunc(h.customerEnv, func(entry string) bool { return strings.HasPrefix(entry, "ENVIRONMENT=") })
	group := strings.TrimPrefix(h.customerEnv[at], "ENVIRONMENT=") + "." + consumer
	admin := kafkatest.Admin(t, h.brokers)
	var n int64
	testkit.Until(t, func() bool {
		n = 0
		groups, err := admin.ListConsumerGroups()
		for name := range groups {
			if strings.HasSuffix(name, "."+group) {
				var committed *sarama.OffsetFetchResponse
				committed, err = admin.ListConsumerGroupOffsets(name, nil)
				n += sum(committed)
			}
		}
		return err == nil && n == records
	}, "%s has read %d of %d records", consumer, &n, records)
}

func sum(committed *sarama.OffsetFetchResponse) (n int64) {
	if committed == nil {
		return 0
	}
	for _, partitions := range committed.Blocks {
		for _, at := range partitions {
			n += max(0, at.Offset)
		}
	}
	return n
}
