package e2e

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/realkafka"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func withTwo(t *testing.T, brokers []string, more ...string) (h *stack, customer, notification *watched) {
	t.Helper()
	h = newStackOn(t, brokers, pgtest.New(t, migrations.ForCustomer()...), append(unlimited, more...)...)
	return h, h.watch(t, customerService), h.watch(t, notificationService)
}

func requireHealedBroker(t *testing.T, h *stack, customer *watched) {
	t.Helper()
	require.Positive(t, customer.times(brokerBack))
	require.LessOrEqual(t, customer.times(brokerBack), 6, "once for each partition")
	require.Positive(t, customer.times(healed))
	customer.requireNoStaleEvent(t)
	require.Zero(t, customer.times(databaseBack))
	require.Zero(t, count(t, h.customerDB, `select count(*) from outbox_lost`))
	require.Equal(t, 1, count(t, h.customerDB,
		`select count(*) from outbox_cursor where broker_back_at is not null and refused is null`))
}

// awaitHandled waits until so many events are handled that are written from now on. The relay knows then that all but
// those of its last page are on the log.
func (h *stack) awaitHandled(t *testing.T, more int) {
	t.Helper()
	const written = `select event_id::text from outbox where position > $1`
	from := count(t, h.customerDB, `select coalesce(max(position), 0) from outbox`)
	testkit.Until(t, func() bool {
		rows, err := h.customerDB.Query(t.Context(), written, from)
		require.NoError(t, err)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		var handled int
		require.NoError(t, h.notificationDB.QueryRow(t.Context(),
			`select count(*) from inbox where event_id = any ($1)`, ids).Scan(&handled))
		return handled >= more
	}, "no new event is handled")
}

// The broker loses records that it had acknowledged and not flushed. One service had read them.
func TestABrokerLosesPower(t *testing.T) {
	t.Parallel()
	b := startBroker(t, realkafka.Config{})
	h, customer, notification := withTwo(t, []string{b.addr()})
	crowd := h.populate(t, "a")
	crowd.await(t, 40)
	crowd.goHome()
	h.awaitRecorded(t)
	flushed := b.flushed(t, contract.TopicUsers)
	crowd = h.populate(t, "b")
	crowd.await(t, 30)
	notification.stop()
	crowd.await(t, 40)
	crowd.goHome()
	awaitRecorded(t, h.customerDB)
	b.losePower(t, flushed)
	h.watch(t, notificationService)
	crowd = h.populate(t, "c")
	crowd.await(t, 60)
	crowd.goHome()
	h.requireWhole(t, 1)
	requireHealedBroker(t, h, customer)
}

func TestALeaderIsElectedThatLacksRecords(t *testing.T) {
	t.Parallel()
	brokers := startThree(t)
	first := []string{brokers[0].addr()}
	admin := kafkatest.Admin(t, first)
	h := newStackOn(t, first, pgtest.New(t, migrations.ForCustomer()...),
		append(unlimited, "KAFKA_BROKERS="+addressesOf(brokers))...)
	dropTopics(t, first, contract.TopicUsers, contract.TopicMails)
	placeTopic(t, admin, contract.TopicUsers, 2, 3)
	placeTopic(t, admin, contract.TopicMails, 1)
	awaitLeader(t, brokers[0], contract.TopicUsers, 2, 2)
	customer, notification := h.watch(t, customerService), h.watch(t, notificationService)
	crowd := h.populate(t, "a")
	crowd.await(t, 40)
	brokers[2].server.Kill()
	awaitLeader(t, brokers[0], contract.TopicUsers, 2, 1)
	crowd.await(t, 30)
	notification.stop()
	crowd.await(t, 30)
	crowd.goHome()
	awaitRecorded(t, h.customerDB)
	brokers[1].server.Kill()
	brokers[2].restart(t)
	awaitLeader(t, brokers[0], contract.TopicUsers, 3, 1)
	brokers[1].restart(t)
	awaitLeader(t, brokers[0], contract.TopicUsers, 3, 2)
	h.watch(t, notificationService)
	crowd = h.populate(t, "b")
	crowd.await(t, 60)
	crowd.goHome()
	h.requireWhole(t, 1)
	requireHealedBroker(t, h, customer)
}

func TestATopicIsDeletedAndMadeAnew(t *testing.T) {
	parallel(t)
	h, customer, _ := withTwo(t, ownBrokers(t))
	crowd := h.populate(t, "a")
	crowd.await(t, 60)
	h.awaitHandled(t, 10)
	h.makeAnew(t, contract.TopicUsers)
	crowd.await(t, 60)
	crowd.goHome()
	h.requireWhole(t, 1)
	requireHealedBroker(t, h, customer)
}

// The log loses the events that the database had lost, during the heal or after it.
func TestTheDatabaseGoesBackAndThenTheBroker(t *testing.T) {
	t.Parallel()
	for name, isHealed := range map[string]bool{"in the heal": false, "behind the heal": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each has a broker of its own
			broker := startBroker(t, realkafka.Config{})
			b := newBackStack(t, customerService, []string{broker.addr()})
			ada := b.signUpWitness(t)
			crowd := b.populate(t, "a")
			crowd.await(t, 40)
			standby := b.cluster.standby(t)
			cutOff(t, standby)
			flushed := broker.flushed(t, contract.TopicUsers)
			b.renameWitness(t, ada, 1)
			b.publishMore(t, 20)
			b.cluster.failOver(t, standby)
			b.renameWitness(t, ada, 1, 2)
			crowd.await(t, 40)
			b.awaitSaid(t, databaseBack)
			if isHealed {
				b.awaitSaid(t, healed)
				b.awaitHealed(t)
			}
			broker.losePower(t, flushed)
			crowd.await(t, 60)
			crowd.goHome()
			b.requireWhole(t)
			b.requireHealedDatabase(t)
			require.Positive(t, b.both[customerService].times(brokerBack))
		})
	}
}

// The relay has no look at the log in between: events that both lost are gone.
func TestTheBrokerGoesBackAndThenTheDatabase(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, realkafka.Config{})
	b := newBackStack(t, customerService, []string{broker.addr()})
	ada := b.signUpWitness(t)
	crowd := b.populate(t, "a")
	crowd.await(t, 40)
	flushed := broker.flushed(t, contract.TopicUsers)
	b.renameWitness(t, ada, 1)
	b.publishMore(t, 10)
	standby := b.cluster.standby(t)
	cutOff(t, standby)
	b.renameWitness(t, ada, 2)
	b.publishMore(t, 20)
	crowd.goHome()
	b.awaitRecorded(t)
	broker.losePower(t, flushed)
	b.awaitSaid(t, healed)
	b.awaitHealed(t)
	b.requireOnLog(t, b.customerDB, contract.TopicUsers)
	b.cluster.failOver(t, standby)
	b.renameWitness(t, ada, 2, 3)
	crowd = b.populate(t, "b")
	crowd.await(t, 60)
	crowd.goHome()
	b.requireWhole(t)
	b.requireHealedDatabase(t)
	require.Positive(t, b.both[customerService].times(brokerBack))
}
