package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// unlimited lets all people of a test be one client. Consumers rejoin soon.
var unlimited = []string{"RATE_LIMIT=0", "INBOX_RETRY_MIN=100ms", "KAFKA_SESSION_TIMEOUT=2s"}

type backStack struct {
	*stack
	cluster *cluster
	name    string
	both    map[string]*watched
}

func newBackStack(t *testing.T, name string, brokers []string, more ...string) *backStack {
	t.Helper()
	more = append(unlimited, more...)
	b := &backStack{name: name, both: map[string]*watched{}}
	if name == customerService {
		b.cluster = newCluster(t, migrations.ForCustomer()...)
		b.stack = newStackOn(t, brokers, b.cluster.pool, more...)
	} else {
		b.cluster = newCluster(t, migrations.ForNotification()...)
		b.stack = newStackOn(t, brokers, pgtest.New(t, migrations.ForCustomer()...), more...)
		b.notificationDB = b.cluster.pool
		b.notificationEnv = append(b.notificationEnv, "DATABASE_URL="+pgtest.DSN(b.notificationDB))
	}
	for _, service := range []string{customerService, notificationService} {
		b.both[service] = b.watch(t, service)
	}
	return b
}

func (b *backStack) signUpWitness(t *testing.T) (id string) {
	t.Helper()
	answer := b.client().insist(t, http.StatusCreated, http.MethodPost, "/v1/signups",
		`{"email":"witness@example.org","name":"Ada"}`, map[string]string{"Idempotency-Key": `"witness"`})
	id, _ = answer.Body["user_id"].(string)
	b.awaitWitness(t, id, 1)
	return id
}

func (b *backStack) renameWitness(t *testing.T, id string, versions ...int) {
	t.Helper()
	var got response
	testkit.Until(t, func() bool {
		for _, version := range versions {
			var err error
			got, err = b.client().try(t.Context(), http.MethodPatch, "/v1/customers/"+id,
				fmt.Sprintf(`{"name":"Ada %d","expected_version":%d}`, version+1, version), nil)
			if err == nil && got.Status == http.StatusOK {
				return true
			}
		}
		return false
	}, "renamed at none of %v: %v", versions, &got)
	if len(versions) == 1 {
		b.awaitWitness(t, id, versions[0]+1)
	}
}

func (b *backStack) awaitWitness(t *testing.T, id string, version int) {
	t.Helper()
	for db, table := range map[*pgxpool.Pool]string{b.customerDB: "profile", b.notificationDB: "contact"} {
		sql := fmt.Sprintf(`select count(*) from %s where user_id = '%s' and version = %d`, table, id, version)
		testkit.Until(t, func() bool { return count(t, db, sql) == 1 }, sql)
	}
}

func (b *backStack) published(t *testing.T) int {
	t.Helper()
	return count(t, b.cluster.pool, `select count(*) from outbox o, outbox_cursor c
		where pg_visible_in_snapshot(o.xid, c.done)`)
}

func (b *backStack) requireWhole(t *testing.T) {
	t.Helper()
	mails := 1
	if b.name == notificationService {
		mails = 2 // leases that went back are carried out again
	}
	b.stack.requireWhole(t, mails)
	for _, w := range b.both {
		w.requireNoStaleEvent(t)
	}
}

func (b *backStack) publishMore(t *testing.T, more int) {
	t.Helper()
	want := b.published(t) + more
	testkit.Until(t, func() bool { return b.published(t) >= want }, "nothing is published")
}

func (b *backStack) awaitSaid(t *testing.T, text string) {
	t.Helper()
	testkit.Until(t, func() bool { return b.both[b.name].times(text) > 0 }, text)
}

func (b *backStack) requireHealedDatabase(t *testing.T) {
	t.Helper()
	require.Positive(t, count(t, b.cluster.pool, `select count(*) from outbox_lost`))
	require.Equal(t, 1, count(t, b.cluster.pool,
		`select count(*) from outbox_cursor where database_back_at is not null and refused is null`))
	require.Equal(t, 1, b.both[b.name].times(databaseBack), "it is said once")
}

func (b *backStack) requireOtherSawNothing(t *testing.T) {
	t.Helper()
	other, db := notificationService, b.notificationDB
	if b.name == notificationService {
		other, db = customerService, b.customerDB
	}
	b.both[other].requireNothingToSee(t, db)
}

func TestAStandbyIsPromotedThatLackedCommits(t *testing.T) {
	parallel(t)
	for _, name := range []string{customerService, notificationService} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			b := newBackStack(t, name, ownBrokers(t))
			ada := b.signUpWitness(t)
			crowd := b.populate(t, "a")
			crowd.await(t, 40)
			standby := b.cluster.standby(t)
			crowd.await(t, 10)
			cutOff(t, standby)
			b.renameWitness(t, ada, 1)
			b.renameWitness(t, ada, 2)
			b.publishMore(t, 20)
			b.cluster.failOver(t, standby)
			b.renameWitness(t, ada, 1, 3)
			crowd.await(t, 60)
			crowd.goHome()
			b.requireWhole(t)
			require.Equal(t, 4, count(t, b.customerDB, `select version from profile where user_id = '`+ada+`'`))
			b.requireHealedDatabase(t)
			b.requireOtherSawNothing(t)
		})
	}
}

func TestAStandbyIsPromotedThatHasAllCommits(t *testing.T) {
	parallel(t)
	b := newBackStack(t, customerService, ownBrokers(t))
	crowd := b.populate(t, "a")
	standby := b.cluster.standby(t)
	crowd.await(t, 40)
	crowd.goHome()
	b.awaitRecorded(t)
	written := answer[string](t, b.cluster.leader, `select pg_current_wal_lsn()::text`)
	testkit.Until(t, func() bool {
		return answer[bool](t, standby, `select pg_last_wal_replay_lsn() >= '`+written+`'`)
	})
	b.cluster.failOver(t, standby)
	crowd = b.populate(t, "b")
	crowd.await(t, 40)
	crowd.goHome()
	b.requireWhole(t)
	b.both[customerService].requireNothingToSee(t, b.customerDB)
}

// The lost events are younger than OUTBOX_HEAL_WITHIN.
func TestABackupIsRestoredToATarget(t *testing.T) {
	parallel(t)
	for _, name := range []string{customerService, notificationService} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			b := newBackStack(t, name, ownBrokers(t))
			ada := b.signUpWitness(t)
			crowd := b.populate(t, "a")
			crowd.await(t, 20)
			backup := b.cluster.backup(t)
			crowd.await(t, 20)
			b.cluster.restorePoint(t, "target")
			b.renameWitness(t, ada, 1)
			b.publishMore(t, 20)
			b.cluster.restore(t, backup, "target")
			b.renameWitness(t, ada, 1, 2)
			crowd.await(t, 60)
			crowd.goHome()
			b.requireWhole(t)
			b.requireHealedDatabase(t)
			b.requireOtherSawNothing(t)
		})
	}
}

// The server starts on the old timeline, and the lost events are old. The relay publishes after an operator has
// confirmed.
func TestABackupIsRestoredWithoutATarget(t *testing.T) {
	parallel(t)
	b := newBackStack(t, customerService, ownBrokers(t), "OUTBOX_HEAL_WITHIN=1ms")
	crowd := b.populate(t, "a")
	crowd.await(t, 20)
	backup := b.cluster.backup(t)
	b.publishMore(t, 20)
	b.cluster.restore(t, backup, "")
	text := b.awaitRefusal(t, b.cluster.pool, "events_unknown")
	require.Contains(t, text, " (first: topic customer.users.v1, partition ")
	before := b.published(t)
	crowd.await(t, 20)
	require.Equal(t, before, b.published(t), "nothing is published until it is confirmed")
	b.confirm(t, b.cluster.pool, "events_unknown")
	crowd.await(t, 40)
	crowd.goHome()
	b.requireWhole(t)
	b.requireHealedDatabase(t)
	b.requireOtherSawNothing(t)
}

func (h *stack) awaitRefusal(t *testing.T, db *pgxpool.Pool, code string) (text string) {
	t.Helper()
	testkit.Until(t, func() bool {
		err := db.QueryRow(t.Context(), `select coalesce(refused, '') from outbox_cursor`).Scan(&text)
		return err == nil && text != ""
	}, "nothing is refused")
	require.Contains(t, text, code+": ")
	return text
}

func (h *stack) confirm(t *testing.T, db *pgxpool.Pool, code string) {
	t.Helper()
	tag, err := db.Exec(t.Context(), `update outbox_cursor set confirmed = refused where starts_with(refused, $1 || ':')`,
		code)
	require.NoError(t, err)
	require.EqualValues(t, 1, tag.RowsAffected())
}

// A copy of the data directory runs elsewhere, with production's broker and names. It must not publish.
func TestACopyOfTheDataTalksToProduction(t *testing.T) {
	parallel(t)
	b := newBackStack(t, customerService, ownBrokers(t))
	crowd := b.populate(t, "a")
	crowd.await(t, 20)
	dir := b.cluster.backup(t)
	b.publishMore(t, 20)
	crowd.goHome()
	b.awaitRecorded(t)

	server := startOn(t, dir)
	pool, err := pgxpool.New(t.Context(), server.DSN("postgres"))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	copied := &stack{brokers: b.brokers, box: b.box, customerDB: pool}
	copied.customerEnv = append(slices.Clip(b.customerEnv), "DATABASE_URL="+pgtest.DSN(pool),
		"HTTP_ADDR="+testkit.ReservePort(t), "OUTBOX_HEAL_WITHIN=1ms")
	before, _ := b.logged(t, contract.TopicUsers)
	other := copied.watch(t, customerService)
	text := copied.awaitRefusal(t, pool, "events_unknown")
	require.Contains(t, text, "a copy that talks to production's Kafka. A copy: stop it.")
	strangers := copied.populate(t, "copy")
	strangers.await(t, 10)
	strangers.goHome()
	after, _ := b.logged(t, contract.TopicUsers)
	require.Equal(t, before, after, "the copy publishes nothing")
	other.stop()

	crowd = b.populate(t, "b")
	crowd.await(t, 20)
	crowd.goHome()
	b.requireWhole(t)
	b.both[customerService].requireNothingToSee(t, b.customerDB)
}
