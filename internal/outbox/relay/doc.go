// Package relay publishes what package outbox has added, window by window: every event at least once, those of one key
// in order.
//
//	relay.go     sessions, who leads, and what is known of a relay's health
//	session.go   what its server must be like, the lease, the leader's statements
//	lead.go      a leader at work: what is due, a window, a pause
//	round.go     a window: pages are read while others are sent, and what was taken is recorded
//	send.go      calls of Publish, what became of each record, and the metrics
//	settle.go    failed records are sent again, or their keys parked and tried again later
//	chores.go    the table's partitions, the broker's topics, a database that was set back, events that are due later
//
// # Who publishes
//
// One relay leads: it holds the lease in the cursor row, on the database's clock. Every change of the cursor repeats
// the epoch, which a take-over raises, and the generation, which every change raises; a relay that has lost either
// changes nothing. A call of Publish may take less time than the lease lasts, and is not made unless that much is left
// for sure. If a leader is stopped in the middle of a call and wakes up after its lease, its records arrive late and
// twice. They are still in order: both leaders send a key's records in the same order, each from its first unpublished
// one on, so any record is preceded by those before it, from the one or from the other.
//
// With the lease a leader takes an advisory lock of its epoch on its session. A follower that finds it free knows that
// the session has ended and does not wait for the lease: after kill -9 it leads within 750 ms. The process may
// live, without its session and with a call of Publish under way; the same argument holds for its records, and it sends
// nothing more. docs/adr/0003-one-relay-leads.md has the sequence of events.
//
// # Who tries again
//
// The publisher tries within a call for as long as the call may take, and says of each record what became of it: it
// isolates the records that are refused, and takes none behind a key's first failure. The relay decides about keys
// between calls: it sends again what failed, in order, and sets a key aside that keeps others waiting. Only of a
// publisher that answers for the whole call (see [FailedIndexes]) the relay finds the refused record itself. Each
// failure is logged as it happens; to say an outage once is the log handler's affair.
//
// # What shows it
//
//	a restart anywhere                  TestRelayCrashesEverywhere, with the duplicates; TestRelayDiesAroundAnyStatement
//	all of it together                  TestChaos
//	the barrier                         TestNothingPublishedIsUndoneByAServerCrash
//	stale leaders                       TestStoppedLeaderChangesNothing, TestAStale...
//	leaders that die                    TestAKilledLeaderIsReplacedBeforeItsLeaseEnds, TestARestartedRelay...
//	leaders that lose their session     TestALeaderWithoutItsSessionSendsNothingMore
//	broken sessions and connections     TestRelayOutlivesItsSessions, TestRelayOutlivesACutConnection
//	brokers that fail                   TestRelayOutlivesALongOutage, TestRelayWaitsForALatePublisher, TestRelayToKafka
//	keys that cannot be published       parked_test.go
//
// # What it does not do
//
// No exactly-once on the wire: a crash sends again what was taken since the last advance, and consumers skip by event
// id. How much that is has a limit: [Config.MaxUnrecorded] events (10,000), the page in the air included, and while a
// backlog is drained an advance every [Config.RecordEvery] (100 ms). What a window held is recorded before anything
// behind it is sent, by the statement that opens what comes next, or at rest within some 25 ms
// (docs/adr/0001-read-the-outbox-by-snapshot-window.md). A session that breaks costs no duplicates, since the process
// remembers, unless a follower takes over before the process has another.
//
// No order across keys.
package relay
