package eventing_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
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

// troubled is a service in which one thing goes wrong at a time: its database, its broker, and the settings of its
// instances.
type troubled struct {
	pool    *pgxpool.Pool
	cluster *kfake.Cluster
	brokers []string
	cfg     eventing.Config
	topic   string
	handle  func(ctx context.Context, data pinged) error
}

// newTrouble gives a service with one partition, and a broker that takes scripted faults.
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

// instance runs one more process of the service.
func (s *troubled) instance(t *testing.T) *bundle {
	t.Helper()
	b := open(t, s.cfg, s.cfg.Topics(s.topic)...)
	mux := inbox.NewMux()
	inbox.Handle(mux, pingedEvent, func(ctx context.Context, _ pgx.Tx, _ event.Event, data pinged) error {
		return s.handle(ctx, data)
	})
	require.NoError(t, b.node.Consume(eventing.Consumer{
		Name: repeatedConsumer, Topic: s.topic, Handlers: mux, Order: inbox.Strict,
	}))
	b.serve(t)
	return b
}

func (s *troubled) send(t *testing.T, versions ...int64) {
	t.Helper()
	for _, version := range versions {
		sendRaw(t, s.brokers, pingRecord(t, s.topic, version))
	}
}

// awaitCause waits until the instance says why it waits, in a sentence of this form, and says the same in /readyz.
func (b *bundle) awaitCause(t *testing.T, code, sentence string) (found service.Cause) {
	t.Helper()
	var report service.Readiness
	testkit.Until(t, func() bool { // each is as of its own moment
		found = b.node.Cause(t.Context())
		answer := httptest.NewRecorder()
		b.admin.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
		report = service.Readiness{}
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &report))
		require.NotNil(t, report.Cause)
		return found.Code == code && report.Cause.Code == code
	}, "want %s: %v", code, &found)
	require.Regexp(t, "^"+sentence+"$", found.Sentence)
	require.Equal(t, code == service.CodeAllWell, found.Well())
	if !found.Since.IsZero() {
		require.WithinDuration(t, time.Now(), found.Since, patience)
	}
	require.Regexp(t, sentence, report.Cause.Sentence)
	return found
}

func (b *bundle) awaitWell(t *testing.T) {
	t.Helper()
	b.awaitCause(t, service.CodeAllWell, `All is well\.`)
}

const (
	aTime   = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`
	aTopic  = `[\w.]+`
	aNumber = `\d+`
)

func TestCauseABrokerThatIsDown(t *testing.T) {
	t.Parallel()
	b := open(t, environ(t, pgtest.DSN(pgtest.New(t, sets...)), testkit.ReservePort(t)))
	b.serve(t)
	c := b.awaitCause(t, eventing.CauseDependencyDown, `The broker has been down since `+aTime+`: .*connection refused\.`)
	require.Contains(t, c.Figures, "seconds")
	require.NotZero(t, c.Since)
}

func TestCauseADatabaseThatTakesNothing(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	b := s.instance(t)
	b.awaitWell(t)
	name := pgx.Identifier{s.pool.Config().ConnConfig.Database}.Sanitize()
	execute(t, s.pool, `alter database `+name+` set default_transaction_read_only = on`)
	b.awaitCause(t, eventing.CauseDependencyDown, `The database has been down since `+aTime+`: commit: .*read-only.*\.`)
	execute(t, s.pool, `begin read write; alter database `+name+` reset default_transaction_read_only; commit`)
	b.awaitWell(t)
}

// A refusal is shown whole, with the command that ends it, by every instance.
func TestCauseARelayThatRefuses(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	b := s.instance(t)
	b.awaitWell(t)
	execute(t, s.pool, `update outbox_cursor set refused = 'events_unknown: 3 records of users have no row here.'`)
	c := b.awaitCause(t, eventing.CauseRelayRefused, `Nothing is published until an operator confirms it; `+
		`0 events wait\. 3 records of users have no row here\.`)
	require.Equal(t, "twinbox outbox confirm events_unknown", c.Command)
	execute(t, s.pool, `update outbox_cursor set refused = null`)
	b.awaitWell(t)
	execute(t, s.pool, `update outbox_cursor set refused = 'events_unknown: 3.', confirmed = 'events_unknown: 3.'`)
	c = b.awaitCause(t, eventing.CauseRelayRefused, `The relay looks again since events_unknown is confirmed; `+
		`0 events wait\.`)
	require.Equal(t, "twinbox outbox status", c.Command)
}

// A loss is a cause for an hour after it was found; then all is well.
func TestCauseALoss(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	b := s.instance(t)
	b.awaitWell(t)
	execute(t, s.pool, `update outbox_cursor set database_back_at = now(), broker_back_at = now()`)
	c := b.awaitCause(t, eventing.CauseDatabaseBack, `The database went back to an earlier state and lost 0 published `+
		`events; the relay found it at `+aTime+`\. Consumers keep what they applied\. The relay has repaired the log\.`)
	require.Equal(t, "twinbox outbox lost", c.Command)
	require.Equal(t, []string{"lost", "partitions", "seconds"}, slices.Sorted(maps.Keys(c.Figures)))
	execute(t, s.pool, `update outbox_cursor set database_back_at = now() - interval '61 minutes'`)
	execute(t, s.pool, `update outbox_cursor set ends = '{"t/0":{"end":2,"time":1,"expected":2,"from":1}}'`)
	c = b.awaitCause(t, eventing.CauseBrokerBack, `The broker lost records that it had acknowledged; the relay `+
		`found it at `+aTime+`\. The relay publishes the events of 1 topic-partition again\.`)
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
	name := pgx.Identifier{s.pool.Config().ConnConfig.Database}.Sanitize()
	execute(t, s.pool, `alter database `+name+` set synchronous_commit = off`)
	execute(t, s.pool, `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and application_name = 'outbox relay'`)
	instances[0].add(t, s.topic, "a")
	for _, b := range instances {
		c := b.awaitCause(t, eventing.CauseNoLeader,
			`No instance publishes the outbox: \S+ led last; 1 event waits\.`)
		require.EqualValues(t, 1, c.Figures["events"])
		require.Equal(t, "twinbox outbox status", c.Command)
	}
	execute(t, s.pool, `alter database `+name+` reset synchronous_commit`)
	instances[1].awaitWell(t)
}

func TestCauseAKeyThatIsParked(t *testing.T) {
	t.Parallel()
	s := newTrouble(t, "KAFKA_PUBLISH_TIMEOUT=500ms")
	leader, follower := s.instance(t), s.instance(t)
	gone := kafkatest.Group(t)
	leader.add(t, gone, "a")
	leader.add(t, gone, "a")
	for _, b := range []*bundle{leader, follower} {
		testkit.Until(t, func() bool { // the second is held soon after the first
			c := b.node.Cause(t.Context())
			return c.Code == eventing.CauseKeysParked && c.Figures["events"] == 2
		})
		c := b.awaitCause(t, eventing.CauseKeysParked,
			`1 key is parked and holds 2 events; of the first, for `+aTopic+` since `+aTime+`, the broker says: .*topic.*\.`)
		require.EqualValues(t, 1, c.Figures["keys"])
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
	c := b.awaitCause(t, eventing.CauseNoOwner, `No instance of test\.repeated reads `+aTopic+`/0; 1 record waits\.`)
	require.EqualValues(t, 1, c.Figures["records"])
	back()
	b.awaitWell(t)
}

func TestCauseABrokerThatGivesNothingToRead(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	refuses := make(chan struct{})
	s.cluster.ControlKey(int16(kmsg.Fetch), func(asked kmsg.Request) (kmsg.Response, error, bool) {
		select {
		case <-refuses:
			return nil, nil, false
		default:
		}
		s.cluster.KeepControl()
		request := asked.(*kmsg.FetchRequest)
		response := request.ResponseKind().(*kmsg.FetchResponse)
		for _, topic := range request.Topics {
			answer := kmsg.NewFetchResponseTopic()
			answer.Topic = topic.Topic
			for _, p := range topic.Partitions {
				partition := kmsg.NewFetchResponseTopicPartition()
				partition.Partition, partition.ErrorCode = p.Partition, kerr.TopicAuthorizationFailed.Code
				answer.Partitions = append(answer.Partitions, partition)
			}
			response.Topics = append(response.Topics, answer)
		}
		return response, nil, true
	})
	b := s.instance(t)
	s.send(t, 1)
	b.awaitCause(t, eventing.CauseRecordRefused,
		`The broker gives test\.repeated no records of `+aTopic+`/0 since `+aTime+`: kafka_29: .*\.`)
	close(refuses)
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
	b.awaitCause(t, eventing.CauseAttemptFailing, `test\.repeated fails at the next record of `+aTopic+`/0 since `+aTime+
		` and tries again: .*the bank does not answer\.`)
	close(mended)
	b.awaitWell(t)
}

func TestCauseAGap(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	instances := []*bundle{s.instance(t), s.instance(t)}
	s.send(t, 1, 3, 4)
	for _, b := range instances {
		c := b.awaitCause(t, eventing.CauseGap, `1 key of test\.repeated waits for an earlier version that has not come `+
			`since `+aTime+`; \d events? (is|are) parked\.`)
		require.Equal(t, "twinbox dlq list", c.Command)
	}
	s.send(t, 2)
	instances[0].awaitWell(t)
}

// A gap that has closed is no cause: the consumer resumes its events within seconds. Nor is a parked event without one.
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
	c := b.awaitCause(t, eventing.CauseGap, `2 keys of test\.absent wait for an earlier version that has not come since `+
		aTime+`; 2 events are parked\.`)
	require.EqualValues(t, 2, c.Figures["keys"])
}

// The instance that owns the partition says what holds it up, and another one whose it is.
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
	owner.awaitCause(t, eventing.CauseHandlerSlow,
		`The handler of test\.repeated has been at the same records of `+aTopic+`/0 since `+aTime+`\.`)
	other := open(t, s.cfg, s.cfg.Topics(s.topic)...)
	require.NoError(t, other.node.Consume(eventing.Consumer{
		Name: repeatedConsumer, Topic: s.topic, Handlers: inbox.NewMux(), Order: inbox.Strict,
	}))
	defer func() { require.NoError(t, other.node.Close()) }() // it looks on, and does not join
	c := other.awaitCause(t, eventing.CauseConsumerBehind, `test\.repeated is behind: 1 record waits, the first in `+
		aTopic+`/0 since `+aTime+`, which test at \S+ reads\.`)
	require.EqualValues(t, 1, c.Figures["records"])
	goOn()
	owner.awaitWell(t)
}

// The broker takes one call after the other, slower than events come.
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
	c := b.awaitCause(t, eventing.CauseRelayAtLimit,
		`The relay publishes less than is added: `+aNumber+` events wait, the oldest since `+aTime+`\.`)
	require.Greater(t, c.Figures["seconds"], 1.0)
	close(fast)
	b.awaitWell(t)
}

func TestCauseDeadLetters(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	s.handle = func(context.Context, pinged) error { return inbox.Permanent(errors.New("a name that is none")) }
	instances := []*bundle{s.instance(t), s.instance(t)}
	const one = `1 dead letter of 1 key waits for an operator: handler_failed in test\.repeated`
	s.send(t, 1)
	instances[0].awaitCause(t, eventing.CauseDeadLetters, one+`\.`)
	s.send(t, 2)
	for _, b := range instances {
		testkit.Until(t, func() bool { return b.node.Cause(t.Context()).Figures["parked"] == 1 })
		b.awaitCause(t, eventing.CauseDeadLetters, one+`; 1 later event waits behind it\.`)
	}
	execute(t, s.pool, `update dead_letter set state = 'discarded', settled_at = now()`)
	instances[1].awaitWell(t)
}

// A question that is not answered is no good news.
func TestCauseThatIsNotKnown(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	b := s.instance(t)
	b.awaitWell(t)
	execute(t, s.pool, `alter table dead_letter rename to away`)
	b.awaitCause(t, eventing.CauseUnknown, `It is not known whether anything waits: .*dead_letter.*\.`)
	execute(t, s.pool, `alter table away rename to dead_letter`)
	b.awaitWell(t)
}
