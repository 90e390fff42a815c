package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// faults break a system and return when /metrics shows it. The test in deploy/observability has the alerts of each.
// Files of optional folders add theirs.
var faults = map[string]func(t *testing.T, s *scene){
	"broker down":             brokerDown,
	"database down":           databaseDown,
	"mail server down":        mailServerDown,
	"service gone":            serviceGone,
	"no relay leads":          noRelayLeads,
	"nothing published":       nothingPublished,
	"relay refuses":           cursorWith(`refused = 'events_unknown: 3 records have no row here.'`, "outbox_refused"),
	"database went back":      cursorWith(`database_back_at = clock_timestamp()`, "outbox_database_went_back"),
	"broker went back":        cursorWith(`broker_back_at = clock_timestamp()`, "outbox_broker_went_back"),
	"consumer went back":      consumerWentBack,
	"version given twice":     versionGivenTwice,
	"key refused":             keyRefused,
	"consumer stands":         consumerStands,
	"consumer behind":         consumerBehind,
	"dead letter":             deadLetter,
	"version missing":         versionMissing,
	"mail uncertain":          mailUncertain,
	"mail failed":             mailFailed,
	"scheduled event held":    scheduledEventHeld,
	"partitions locked":       partitionsLocked,
	"positions run out":       positionsRunOut,
	"events may come again":   eventsMayComeAgain,
	"a table does not answer": tableLocked,
}

func TestEachFaultShowsInTheMetrics(t *testing.T) {
	parallel(t)
	for name, produce := range faults {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			s := newScene(t, name)
			produce(t, s)
			s.recordState(t)
			s.keep(t)
		})
	}
}

func TestAHealthyDayIsRecorded(t *testing.T) {
	parallel(t)
	s := newScene(t, "healthy")
	s.begin(t)
	s.tell(t)
	s.record(t)
	crowd := s.populate(t, "a")
	for range 5 {
		crowd.await(t, 8)
		s.record(t)
	}
	crowd.goHome()
	signedUp := count(t, s.customerDB, `select count(*) from users`)
	testkit.Until(t, func() bool { return len(s.box.Messages()) == signedUp })
	s.await(t, customerService, "kafka_consumer_lag_records", "", zero)
	s.await(t, notificationService, "kafka_consumer_lag_records", "", zero)
	s.record(t)
	s.keep(t)
}

func TestAStoryWithEveryMetricIsRecorded(t *testing.T) {
	parallel(t)
	s := newScene(t, "story")
	s.settings = newCollector(t).settings()
	s.begin(t)
	s.tell(t)
	twice := healthy()
	s.send(t, twice.message(), twice.message())
	s.await(t, customerService, "inbox_messages_total", `"customer.profile",outcome="duplicate"`, positive)
	set("ce_id", "")(twice)
	s.send(t, twice.message())
	s.await(t, customerService, "inbox_dead_letters_total", `"missing_id"`, positive)
	late := healthy()
	s.send(t, renamed(late.id(), 2).message())
	s.await(t, customerService, "dead_letters_waiting", `consumer="customer.profile",state="parked"`, positive)
	s.send(t, late.message())
	s.await(t, customerService, "inbox_replays_total", `"customer.profile"`, positive)
	s.send(t, renamed(uuid.NewString(), 1).message())
	s.await(t, customerService, "inbox_failed_attempts_total", `"customer.profile"`, positive)
	s.record(t)
	s.broker.down()
	s.signUpAs(t, "grace")
	s.await(t, customerService, "outbox_relay_failures_total", `"transient"`, positive)
	s.record(t)
	s.broker.up()
	s.await(t, customerService, "outbox_relay_oldest_unpublished_seconds", "", zero)
	s.await(t, customerService, "dead_letter_copies_total", "", positive)
	s.record(t)
	s.keep(t)
}

func (s *scene) signUpAs(t *testing.T, name string) string {
	t.Helper()
	answer := s.client().insist(t, http.StatusCreated, http.MethodPost, "/v1/signups",
		fmt.Sprintf(`{"email":"%s@example.org","name":"Ada"}`, name), map[string]string{"Idempotency-Key": `"` + name + `"`})
	id, _ := answer.Body["user_id"].(string)
	return id
}

func brokerDown(t *testing.T, s *scene) {
	s.begin(t)
	s.broker.down()
	s.signUpAs(t, "ada")
	s.await(t, customerService, "dependency_up", `"broker"`, zero)
	s.await(t, notificationService, "dependency_up", `"broker"`, zero)
	s.await(t, customerService, "outbox_relay_oldest_unpublished_seconds", "", positive)
}

func databaseDown(t *testing.T, s *scene) {
	db, gone := durableDatabase(t)
	s.db = db
	s.begin(t, customerService)
	gone.down()
	s.await(t, customerService, "dependency_up", `"database"`, zero)
	s.await(t, customerService, "metrics_source_up", `"outbox"`, zero)
}

func mailServerDown(t *testing.T, s *scene) {
	s.begin(t)
	require.NoError(t, s.box.Close())
	s.signUpAs(t, "ada")
	s.await(t, notificationService, "dependency_up", `"mail server"`, zero)
}

func serviceGone(t *testing.T, s *scene) {
	s.begin(t)
	s.watched[notificationService].stop()
}

// An open session holds the row with the relay's lease. noRelayLeads makes the server one that the relay refuses.
func noRelayLeads(t *testing.T, s *scene) {
	s.begin(t, customerService)
	name := pgx.Identifier{s.customerDB.Config().ConnConfig.Database}.Sanitize()
	execute(t, s.customerDB, `alter database `+name+` set synchronous_commit = off`)
	execute(t, s.customerDB, `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and application_name = 'outbox relay'`)
	s.await(t, customerService, "outbox_relay_has_leader", "", zero)
	s.signUpAs(t, "ada")
}

func nothingPublished(t *testing.T, s *scene) {
	s.begin(t)
	require.NoError(t, pgx.BeginFunc(t.Context(), s.customerDB, func(tx pgx.Tx) error {
		return relay.Pause(t.Context(), tx, "ada", "a fault")
	}))
	s.signUpAs(t, "ada")
	s.await(t, customerService, "outbox_relay_oldest_unpublished_seconds", "", positive)
}

func cursorWith(change, metric string) func(*testing.T, *scene) {
	return func(t *testing.T, s *scene) {
		t.Helper()
		s.begin(t, customerService)
		execute(t, s.customerDB, `update outbox_cursor set `+change)
		s.await(t, customerService, metric, "", positive)
	}
}

func consumerWentBack(t *testing.T, s *scene) {
	s.begin(t, customerService)
	s.signUpAs(t, "ada")
	s.await(t, customerService, "inbox_messages_total", `"customer.profile"`, positive)
	s.await(t, customerService, "kafka_consumer_lag_records", `"customer.profile"`, zero)
	execute(t, s.customerDB, `update inbox_point set next_offset = next_offset - 1 where next_offset > 0`)
	s.await(t, customerService, "inbox_rewinds_total", `"customer.profile"`, positive)
}

// A database that lost an event gives its version to a different one.
func versionGivenTwice(t *testing.T, s *scene) {
	s.begin(t, customerService)
	first := healthy()
	s.send(t, first.message(), renamed(first.id(), 1).message())
	s.await(t, customerService, "inbox_messages_total", `"customer.profile",outcome="stale"`, positive)
}

func keyRefused(t *testing.T, s *scene) {
	s.begin(t, customerService)
	s.alter(t, "max.message.bytes", "100")
	s.signUpAs(t, "ada")
	s.await(t, customerService, "outbox_relay_parked_keys", "", positive)
}

func consumerStands(t *testing.T, s *scene) {
	s.begin(t, customerService)
	s.signUpAs(t, "ada")
	s.await(t, customerService, "inbox_messages_total", `"customer.profile"`, positive)
	lock(t, s.customerDB, `lock table profile in access exclusive mode`)
	s.signUpAs(t, "eve")
	s.await(t, customerService, "kafka_consumer_lag_seconds", `"customer.profile"`, positive)
}

func consumerBehind(t *testing.T, s *scene) {
	s.settings = []string{"INBOX_BATCH=1"}
	s.begin(t, customerService)
	_, err := s.customerDB.Exec(t.Context(), `create function slow() returns trigger language plpgsql as
		'begin perform pg_sleep(0.05); return new; end';
		create trigger slow before insert on profile for each row execute function slow()`)
	require.NoError(t, err)
	var backlog []*sarama.ProducerMessage
	for i := range 600 {
		record := healthy().message()
		record.Timestamp = time.Now().Add(time.Duration(i)*5*time.Second - time.Hour)
		backlog = append(backlog, record)
	}
	s.send(t, backlog...)
	s.await(t, customerService, "inbox_messages_total", `"customer.profile"`, func(v float64) bool { return v > 40 })
	s.await(t, customerService, "kafka_consumer_lag_seconds", `"customer.profile"`, positive)
}

func deadLetter(t *testing.T, s *scene) {
	s.begin(t, customerService)
	record := healthy()
	set("ce_id", "")(record)
	s.lay(t, record)
	s.await(t, customerService, "dead_letters_waiting", `consumer="customer.profile",state="dead"`, positive)
}

func versionMissing(t *testing.T, s *scene) {
	s.begin(t, customerService)
	s.send(t, renamed(uuid.NewString(), 3).message())
	s.await(t, customerService, "dead_letters_waiting", `consumer="customer.profile"`, positive)
}

func renamed(key string, version int) *rawEvent {
	r := healthy()
	r.key = []byte(key)
	r.headers["ce_subject"], r.headers["ce_aggregateversion"] = key, fmt.Sprint(version)
	r.headers["ce_type"] = contract.UserRenamed.Type
	r.value = fmt.Appendf(nil, `{"user_id":"%s","name":"Eve","renamed_at":"2026-01-02T03:04:05Z"}`, key)
	return r
}

func mailUncertain(t *testing.T, s *scene) {
	server := startPost(t)
	server.hangsUp.Store(true)
	s.settings = []string{"SMTP_ADDR=" + server.addr}
	s.begin(t)
	s.signUpAs(t, "ada")
	s.await(t, notificationService, "lease_rows", `"uncertain"`, positive)
}

func mailFailed(t *testing.T, s *scene) {
	server := startPost(t)
	server.isFull.Store(true)
	s.settings = []string{"SMTP_ADDR=" + server.addr, "MAIL_MAX_ATTEMPTS=1"}
	s.begin(t)
	s.signUpAs(t, "ada")
	s.await(t, notificationService, "lease_rows", `"failed"`, positive)
}

// An open session holds the key of an event that is due.
func scheduledEventHeld(t *testing.T, s *scene) {
	s.begin(t, customerService)
	s.signUpAs(t, "ada")
	lock(t, s.customerDB, `select from outbox_key for update`)
	_, err := s.customerDB.Exec(t.Context(), `insert into outbox_scheduled (name, due_at, event_type, source, topic, key,
		data_schema, payload) select 'reminder', clock_timestamp() - interval '2 minutes', 'reminder-due.v1', '/customer',
		topic, key, '', '{}' from outbox_key limit 1`)
	require.NoError(t, err)
	s.await(t, customerService, "outbox_scheduled_overdue_seconds", "", positive)
}

// The outbox's definition is locked while new table partitions are needed.
func partitionsLocked(t *testing.T, s *scene) { s.fillOutbox(t, 1_000_000) }

func positionsRunOut(t *testing.T, s *scene) { s.fillOutbox(t, 3_900_000) }

func (s *scene) fillOutbox(t *testing.T, position int64) {
	t.Helper()
	s.begin(t, customerService)
	lock(t, s.customerDB, `lock table outbox in share update exclusive mode`)
	_, err := s.customerDB.Exec(t.Context(), `select setval('outbox_position_seq', $1)`, position)
	require.NoError(t, err)
	for n := range 5 { // each session of the relay begins with a look at the partitions
		_, err = s.customerDB.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and application_name = 'outbox relay'`)
		require.NoError(t, err)
		s.await(t, customerService, "outbox_relay_neglects_total", "", func(v float64) bool { return v > float64(n) })
		if n == 3 {
			s.record(t)
		}
	}
	s.await(t, customerService, "outbox_relay_has_leader", "", positive)
}

func eventsMayComeAgain(t *testing.T, s *scene) {
	s.settings = []string{"INBOX_JANITOR_INTERVAL=1s"}
	s.begin(t, customerService)
	s.alter(t, "retention.ms", fmt.Sprint((365 * 24 * time.Hour).Milliseconds()))
	s.await(t, customerService, "inbox_janitor_refused", "", positive)
}

func tableLocked(t *testing.T, s *scene) {
	s.begin(t, customerService)
	lock(t, s.customerDB, `lock table dead_letter in access exclusive mode`)
	s.await(t, customerService, "metrics_source_up", `"dead_letters"`, zero)
}

// lock keeps the transaction open until the test ends, before its services do.
func lock(t *testing.T, db *pgxpool.Pool, statement string) {
	t.Helper()
	tx, err := db.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tx.Rollback(context.Background())) })
	_, err = tx.Exec(t.Context(), statement)
	require.NoError(t, err)
}

func (s *scene) alter(t *testing.T, name, value string) {
	t.Helper()
	require.NoError(t, kafkatest.Admin(t, s.brokers).AlterConfig(sarama.TopicResource, contract.TopicUsers,
		map[string]*string{name: &value}, false))
}
