package e2e

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/realkafka"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// withTwo starts both services on a broker whose records the test takes away.
func withTwo(t *testing.T, brokers []string, more ...string) (h *stack, customer, notification *watched) {
	t.Helper()
	h = newStackOn(t, brokers, pgtest.New(t, migrations.ForCustomer()...), append(unlimited, more...)...)
	return h, h.watch(t, customerService), h.watch(t, notificationService)
}

// requireHealedBroker looks at what is said of a topic that lost records: of its writer, and nothing of a database.
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

// awaitHandled waits until Notification has handled so many more events: the broker has acknowledged them.
func (h *stack) awaitHandled(t *testing.T, more int) {
	t.Helper()
	handled := func() int { return count(t, h.notificationDB, `select count(*) from inbox`) }
	want := handled() + more
	testkit.Until(t, func() bool { return handled() >= want }, "no event is handled")
}

// A broker loses power: what it had acknowledged and not flushed is gone, and new records get its offsets. One service
// had read the lost records, the other had not.
func TestABrokerLosesPower(t *testing.T) {
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

// The same while people sign up and both services run.
func TestABrokerLosesPowerUnderLoad(t *testing.T) {
	b := startBroker(t, realkafka.Config{})
	h, customer, _ := withTwo(t, []string{b.addr()})
	crowd := h.populate(t, "a")
	crowd.await(t, 60)
	flushed := b.flushed(t, contract.TopicUsers)
	testkit.Until(t, func() bool { return !maps.Equal(flushed, b.flushed(t, contract.TopicUsers)) }, "nothing is appended")
	h.awaitHandled(t, 10)
	b.losePower(t, flushed)
	crowd.await(t, 60)
	crowd.goHome()
	h.requireWhole(t, 1)
	requireHealedBroker(t, h, customer)
}

// Of three brokers one that lacks records becomes the leader: the follower was away when they were written, and the
// leader is killed.
func TestALeaderIsElectedThatLacksRecords(t *testing.T) {
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

// The users' topic is deleted and made anew while both services run.
func TestATopicIsDeletedAndMadeAnew(t *testing.T) {
	parallel(t)
	h, customer, _ := withTwo(t, kafkatest.Brokers(t))
	crowd := h.populate(t, "a")
	crowd.await(t, 60)
	h.awaitHandled(t, 10)
	h.makeAnew(t, contract.TopicUsers)
	crowd.await(t, 60)
	crowd.goHome()
	h.requireWhole(t, 1)
	requireHealedBroker(t, h, customer)
}

// The database goes back and then the broker: the events that the database lost are lost on the log, too, after they
// were found there, while they are sent again or behind that.
func TestTheDatabaseGoesBackAndThenTheBroker(t *testing.T) {
	for name, isHealed := range map[string]bool{"in the heal": false, "behind the heal": true} {
		t.Run(name, func(t *testing.T) {
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

// The broker goes back and then the database, to where it was before the broker did. The log is whole in between: what
// both lost before the relay had looked is gone.
func TestTheBrokerGoesBackAndThenTheDatabase(t *testing.T) {
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
	b.requireOnLog(t, b.customerDB, contract.TopicUsers)
	b.awaitHealed(t)
	b.cluster.failOver(t, standby)
	b.renameWitness(t, ada, 2, 3)
	crowd = b.populate(t, "b")
	crowd.await(t, 60)
	crowd.goHome()
	b.requireWhole(t)
	b.requireHealedDatabase(t)
	require.Positive(t, b.both[customerService].times(brokerBack))
}
