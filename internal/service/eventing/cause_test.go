package eventing_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

const repeatedConsumer = "test.repeated"

type troubled struct {
	pool    *pgxpool.Pool
	cluster *kfake.Cluster
	brokers []string
	cfg     eventing.Config
	topic   string
	handle  func(ctx context.Context, data pinged) error
}

func newTrouble(t *testing.T, more ...string) *troubled {
	t.Helper()
	s := &troubled{pool: pgtest.New(t, sets...), topic: kafkatest.Group(t)}
	s.cluster, s.brokers = kafkatest.Fake(t)
	s.cfg = environ(t, pgtest.DSN(s.pool), s.brokers[0],
		append([]string{"KAFKA_TOPIC_PARTITIONS=1", "INBOX_RETRY_MIN=10ms"}, more...)...)
	s.handle = func(context.Context, pinged) error { return nil }
	ensureTopic(t, s.cfg, s.topic)
	return s
}

func (s *troubled) instance(t *testing.T) *bundle {
	t.Helper()
	b := open(t, s.cfg, s.cfg.Topics(s.topic)...)
	b.consume(t, eventing.Consumer{
		Name: repeatedConsumer, Topic: s.topic, Order: inbox.Strict,
		Handlers: pings(func(ctx context.Context, _ pgx.Tx, _ event.Event, data pinged) error {
			return s.handle(ctx, data)
		}),
	})
	b.serve(t)
	return b
}

func (s *troubled) send(t *testing.T, versions ...int64) {
	t.Helper()
	for _, version := range versions {
		sendRaw(t, s.brokers, pingRecord(t, s.topic, version))
	}
}

func (b *bundle) awaitCause(t *testing.T, code, what string) (found service.Cause) {
	t.Helper()
	var all []service.Cause
	testkit.Until(t, func() bool {
		all = b.node.Admin.Causes()
		i := slices.IndexFunc(all, func(c service.Cause) bool {
			return c.Code == code && regexp.MustCompile("^"+what+"$").MatchString(c.What)
		})
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	}, "want %s, %s: %v", code, what, &all)
	require.NotEmpty(t, found.Means)
	require.NotEmpty(t, found.Do)
	if !found.Since.IsZero() {
		require.WithinDuration(t, time.Now(), found.Since, patience)
	}
	return found
}

func (b *bundle) awaitWell(t *testing.T) {
	t.Helper()
	var all []service.Cause
	testkit.Until(t, func() bool {
		all = b.node.Admin.Causes()
		return len(all) == 0
	}, "want none: %v", &all)
}

const (
	aTopic  = `[\w.]+`
	aNumber = `\d+`
)

func TestCauseABrokerThatIsDown(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	for broker, details := range map[string]string{
		testkit.ReservePort(t): "connection refused", silent.Addr().String(): "no answer",
	} {
		b := open(t, environ(t, pgtest.DSN(pgtest.New(t, sets...)), broker))
		b.consume(t, eventing.Consumer{Name: "c", Topic: "t", Handlers: inbox.NewMux()})
		b.serve(t)
		c := b.awaitCause(t, "dependency_down", `The broker is down\.`)
		require.NotZero(t, c.Since)
		require.Contains(t, c.Details, details)
		require.Equal(t, "Requests work, and their events wait in the outbox. Nothing is lost.", c.Means)
		require.True(t, c.Stops)
		testkit.Until(t, func() bool { return len(b.node.Admin.Causes()) == 1 }, "no other, once there is a leader")
	}
}

func TestCauseARelayThatRefuses(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	b := s.instance(t)
	b.add(t, s.topic, "a")
	kafkatest.ReadAll(t, s.brokers, s.topic, 1)
	b.awaitWell(t)
	execute(t, s.pool, `update outbox_cursor set refused = 'events_unknown: 3 records of users have no row here.'`)
	c := b.awaitCause(t, "relay_refused", `Nothing is published until an operator confirms it; 0 events wait\.`)
	require.Equal(t, "3 records of users have no row here.", c.Means)
	require.Equal(t, "twinbox outbox confirm events_unknown --service test", c.Command)
	execute(t, s.pool, `update outbox_cursor set refused = null`)
	b.awaitWell(t)
	execute(t, s.pool, `update outbox_cursor set refused = 'events_unknown: 3.', confirmed = 'events_unknown: 3.'`)
	c = b.awaitCause(t, "relay_refused", `The relay looks again since events_unknown is confirmed; `+
		`0 events wait\.`)
	require.Equal(t, "twinbox outbox status", c.Command)
}

func TestCauseALoss(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	b := s.instance(t)
	b.awaitWell(t)
	execute(t, s.pool, `update outbox_cursor set database_back_at = now(), broker_back_at = now()`)
	c := b.awaitCause(t, "database_went_back", `The database went back to an earlier state and lost 0 published events; `+
		`the relay has repaired the log\.`)
	require.Equal(t, "twinbox outbox lost", c.Command)
	b.awaitCause(t, "broker_went_back", `.*`)
	execute(t, s.pool, `update outbox_cursor set database_back_at = now() - interval '61 minutes'`)
	execute(t, s.pool, `update outbox_cursor set ends = '{"t/0":{"end":2,"time":1,"expected":2,"from":1}}'`)
	c = b.awaitCause(t, "broker_went_back", `The broker lost records that it had acknowledged; `+
		`the relay repairs 1 topic-partition\.`)
	require.Equal(t, "twinbox verify", c.Command)
	execute(t, s.pool, `update outbox_cursor set ends = '{}', broker_back_at = now() - interval '61 minutes'`)
	b.awaitWell(t)
}

// The relays refuse the server, so their sessions end and no instance gets the lock.
func TestCauseNoLeader(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	instances := []*bundle{s.instance(t), s.instance(t)}
	instances[0].awaitWell(t)
	testkit.Until(t, func() bool { // else the later one may get a session with the old settings
		var sessions int
		require.NoError(t, s.pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and application_name = 'outbox relay'`).Scan(&sessions))
		return sessions == len(instances)
	})
	name := databaseOf(s.pool)
	execute(t, s.pool, `alter database `+name+` set synchronous_commit = off`)
	execute(t, s.pool, `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and application_name = 'outbox relay'`)
	instances[0].add(t, s.topic, "a")
	for _, b := range instances {
		c := b.awaitCause(t, "no_leader", `No instance publishes the outbox; the last was \S+; 1 event waits\.`)
		require.Equal(t, "twinbox outbox status", c.Command)
	}
	execute(t, s.pool, `alter database `+name+` reset synchronous_commit`)
	instances[1].awaitWell(t)
}

func TestCauseAKeyThatIsParked(t *testing.T) {
	t.Parallel()
	s := newTrouble(t, "KAFKA_PUBLISH_TIMEOUT=2s")
	leader, follower := s.instance(t), s.instance(t)
	gone := kafkatest.Group(t)
	leader.add(t, gone, "a")
	leader.add(t, gone, "a")
	for _, b := range []*bundle{leader, follower} {
		c := b.awaitCause(t, "keys_parked", `1 key parked with 2 events; the first is for `+aTopic+`\.`)
		require.Contains(t, c.Details, "topic")
	}
	ensureTopic(t, s.cfg, gone)
	leader.awaitWell(t)
}

func TestCauseAPartitionWithoutOwner(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	back := swallow(s.cluster, kmsg.JoinGroup)
	defer back()
	b := s.instance(t)
	s.send(t, 1)
	b.awaitCause(t, "partition_without_owner", `No instance of test\.repeated reads 1 partition of `+aTopic+
		`; 1 record waits\.`)
	back()
	b.awaitWell(t)
}

func TestCauseABrokerThatGivesNothingToRead(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	refusal := s.cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1,
	})
	b := s.instance(t)
	s.send(t, 1)
	c := b.awaitCause(t, "record_refused", `test\.repeated cannot read `+aTopic+`/0\.`)
	require.Regexp(t, `^kafka_29: `, c.Details)
	refusal.Remove()
	b.awaitWell(t)
}

func TestCauseAnAttemptThatFails(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	mended := make(chan struct{})
	s.handle = func(context.Context, pinged) error {
		select {
		case <-mended:
			return nil
		default:
			return failure.AsTransient(errors.New("the bank does not answer"))
		}
	}
	b := s.instance(t)
	s.send(t, 1)
	c := b.awaitCause(t, "attempt_failing", `test\.repeated fails at the next record of `+aTopic+`/0 and tries again\.`)
	require.Contains(t, c.Details, "the bank does not answer")
	close(mended)
	b.awaitWell(t)
}

func TestCauseAGap(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	instances := []*bundle{s.instance(t), s.instance(t)}
	s.send(t, 1, 3, 4)
	for _, b := range instances {
		c := b.awaitCause(t, "waits_for_gap", `test\.repeated misses an earlier version of 1 key; \d events? waits?\.`)
		require.Equal(t, "twinbox dlq list", c.Command)
		require.NotZero(t, c.Since)
	}
	s.send(t, 2)
	instances[0].awaitWell(t)
}

func TestAClosedGapIsNoCause(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	b := s.instance(t)
	b.awaitWell(t)
	park := func(key, code string, version int) {
		execute(t, s.pool, `insert into dead_letter (consumer, event_id, event_type, key, version, headers, payload, topic,
			partition, record_offset, class, code, error, attempts, first_failed_at, holds)
			values ('test.absent', $1 || $3, 't', convert_to($1, 'UTF8'), $2, '[]', '', 't', 0, 0, 'parked', $3, '', 1,
			clock_timestamp(), true)`, key, version, code)
	}
	execute(t, s.pool, `insert into inbox_key (consumer, key, version, parked_from) values ('test.absent', 'a', 2, 3),
		('test.absent', 'b', 2, 4)`)
	park("a", inbox.CodeGap, 3)
	park("a", inbox.CodeParked, 4)
	b.awaitWell(t)
	park("b", inbox.CodeGap, 4)
	park("new", inbox.CodeGap, 2)
	b.awaitCause(t, "waits_for_gap", `test\.absent misses an earlier version of 2 keys; 2 events wait\.`)
}

func TestCauseASlowHandler(t *testing.T) {
	t.Parallel()
	s := newTrouble(t, "INBOX_HANDLER_TIMEOUT=1m")
	waited := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(waited) })
	defer goOn()
	s.handle = func(ctx context.Context, _ pinged) error {
		select {
		case <-waited:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	owner := s.instance(t)
	owner.awaitWell(t)
	s.send(t, 1)
	owner.awaitCause(t, "handler_slow", `The handler of test\.repeated is still at the same records of `+aTopic+`/0\.`)
	other := open(t, s.cfg, s.cfg.Topics(s.topic)...)
	other.consume(t, eventing.Consumer{
		Name: repeatedConsumer, Topic: s.topic, Handlers: inbox.NewMux(), Order: inbox.Strict,
	})
	defer func() { require.NoError(t, other.node.Close()) }()
	other.awaitCause(t, "consumer_behind", `test\.repeated is behind: 1 record waits, the first in `+aTopic+
		`/0, which test at \S+ reads\.`)
	for _, c := range owner.node.Admin.Causes() {
		require.NotEqual(t, "consumer_behind", c.Code, "the slow handler explains it")
	}
	goOn()
	owner.awaitWell(t)
}

func TestCauseARelayAtItsLimit(t *testing.T) {
	t.Parallel()
	s := newTrouble(t, "OUTBOX_BATCH=2")
	fast := make(chan struct{})
	b := s.instance(t)
	b.awaitWell(t)
	s.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		s.cluster.KeepControl()
		s.cluster.SleepControl(func() {
			select {
			case <-fast:
			case <-time.After(200 * time.Millisecond):
			}
		})
		return nil, nil, false
	})
	for i := range 60 {
		b.add(t, s.topic, fmt.Sprint(i))
	}
	c := b.awaitCause(t, "relay_at_limit", `The relay publishes less than is added: `+aNumber+` events wait\.`)
	require.Greater(t, time.Since(c.Since), time.Second)
	close(fast)
	b.awaitWell(t)
}

func TestCauseDeadLetters(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	s.handle = func(context.Context, pinged) error { return inbox.Permanent(errors.New("a name that is none")) }
	instances := []*bundle{s.instance(t), s.instance(t)}
	const one = `test\.repeated has 1 dead letter of 1 key: handler_failed`
	s.send(t, 1)
	c := instances[0].awaitCause(t, "dead_letters", one+`\.`)
	require.Contains(t, c.Details, "a name that is none")
	s.send(t, 2)
	for _, b := range instances {
		b.awaitCause(t, "dead_letters", one+`; 1 event waits behind\.`)
	}
	execute(t, s.pool, `update dead_letter set state = 'discarded', settled_at = now()`)
	instances[1].awaitWell(t)
}

func TestCausesHideNoOther(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	s.handle = func(context.Context, pinged) error { return inbox.Permanent(errors.New("no")) }
	b := s.instance(t)
	s.send(t, 1)
	b.awaitCause(t, "dead_letters", `.*`)
	execute(t, s.pool, `update outbox_cursor set paused_at = now(), paused_by = 'ada', paused_for = 'a test'`)
	b.awaitCause(t, "relay_paused", `ada paused publishing: a test; .*`)
	var codes []string
	testkit.Until(t, func() bool { // an answer may be from before the consumer had its partition
		codes = nil
		for _, c := range b.node.Admin.Causes() {
			codes = append(codes, c.Code)
		}
		return slices.Equal(codes, []string{"dead_letters", "relay_paused"})
	}, "both, and no other: %v", &codes)
	execute(t, s.pool, `alter table inbox_key rename to away`)
	c := b.awaitCause(t, "unknown", `Not everything is known\.`)
	require.Contains(t, c.Details, "inbox_key")
	b.awaitCause(t, "dead_letters", `.*`)
	execute(t, s.pool, `alter table away rename to inbox_key`)
}
