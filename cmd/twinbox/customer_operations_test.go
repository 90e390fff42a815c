package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/local/broker"
	"example.com/twinbox/dev/local/stacktest"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/verify"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

// TestOperationsPage runs docs/operations.md. go test ./cmd/twinbox -run OperationsPage -update writes it anew.
func TestOperationsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := &page{path: "../../docs/operations.md", stack: w.stack, dir: t.TempDir()}
	p.world = map[string]func(t *testing.T){
		"three people sign up while Kafka is down": w.outage,
		"Kafka is back":                                                      w.recovery,
		"the duplicates have come":                                           w.duplicates,
		"all of that is committed":                                           w.committed,
		"a producer sends an event that breaks the contract":                 w.poison,
		"a sign-up that breaks the contract and a change of name after it":   func(t *testing.T) { w.parked(t, p) },
		"the parked events have followed":                                    w.followed,
		"the topic of the users gets more partitions, and a person signs up": w.morePartitions,
		"the event that waited was handled":                                  w.handled,
		"a change of name whose predecessor never comes":                     w.gap,
		"a reminder is scheduled":                                            w.scheduled,
		"a sender dies while the mail server may have taken the mail":        w.uncertain,
	}
	p.run(t)
}

type world struct {
	stack  *stack
	cfg    broker.Config
	broker *broker.Broker
	users  []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{cfg: broker.Config{Dir: t.TempDir(), Addr: testkit.ReservePort(t)}}
	w.start(t)
	t.Cleanup(func() { require.NoError(t, w.broker.Close()) })
	w.stack = newStack(local.Config{
		KafkaBrokers: w.broker.Addr(),
		Settings:     append(stacktest.Patient(), "INBOX_RETRY_MIN=10ms", "INBOX_RETRY_MAX=100ms", "LOG_LEVEL=error"),
	})
	require.NoError(t, w.stack.start())
	t.Cleanup(func() { require.NoError(t, w.stack.stop()) }) // before its broker
	return w
}

func (w *world) start(t *testing.T) {
	t.Helper()
	var err error
	w.broker, err = broker.Start(context.WithoutCancel(t.Context()), w.cfg)
	require.NoError(t, err)
}

func (w *world) outage(t *testing.T) {
	require.NoError(t, w.broker.Close())
	for _, name := range []string{"ada", "bob", "eve"} {
		w.users = append(w.users, w.stack.signUp(t, name+"@example.org"))
	}
}

func (w *world) recovery(t *testing.T) {
	w.start(t)
	for _, user := range w.users {
		w.stack.tail(t, user, 2)
	}
	w.await(t, w.stack.at.Databases["customer"], `select count(*) = 3 from verification_mail`)
}

type consumerStats struct {
	Outcomes map[string]int64 `json:"outcomes"`
	Lag      *int64           `json:"lag_records"`
}

// A lag is up to a second old.
func (w *world) duplicates(t *testing.T) {
	t.Helper()
	w.awaitStats(t, func(items []consumerStats) bool {
		return slices.ContainsFunc(items, func(c consumerStats) bool { return c.Outcomes["duplicate"] == 3 }) &&
			!slices.ContainsFunc(items, func(c consumerStats) bool { return c.Lag == nil || *c.Lag != 0 })
	})
}

func (w *world) awaitStats(t *testing.T, holds func(items []consumerStats) bool) {
	t.Helper()
	testkit.Until(t, func() bool {
		var of map[string]struct {
			Items []consumerStats `json:"items"`
		}
		w.stack.twinbox(t, "inbox", "stats", "--json").json(t, &of)
		return !slices.ContainsFunc(shownServices, func(name string) bool { // one that is slow to answer has no items
			return len(of[name].Items) == 0 || !holds(of[name].Items)
		})
	})
}

// Offsets are committed a moment after their effects.
func (w *world) committed(t *testing.T) {
	t.Helper()
	testkit.Until(t, func() bool {
		var verdicts map[string]verify.Verdict
		w.stack.twinbox(t, "verify", "--json").json(t, &verdicts)
		return !slices.ContainsFunc(shownServices, func(name string) bool { // one that could not be verified has none
			consumed := verdicts[name].Consumed
			return len(consumed) == 0 ||
				slices.ContainsFunc(consumed, func(c verify.Consumed) bool { return c.Pending > 0 })
		})
	})
}

// produce bypasses the outbox and its checks.
func (w *world) produce(t *testing.T, events ...event.Event) {
	t.Helper()
	publisher := kafkatest.NewPublisher(t, []string{w.broker.Addr()})
	defer func() { require.NoError(t, publisher.Close()) }()
	for _, e := range events {
		require.NoError(t, publisher.Publish(contract.TopicUsers, e.Message()))
	}
}

func userEvent(d event.Declaration, user string, version int64, payload string) event.Event {
	return event.Event{
		ID: uuid.Must(uuid.NewV7()).String(), Source: d.Source, Type: d.Type, DataSchema: d.DataSchema, Key: user,
		Time: time.Now().UTC().Truncate(time.Second), Version: version, Data: []byte(payload),
	}
}

func (w *world) poison(t *testing.T) {
	user := uuid.Must(uuid.NewV7()).String()
	w.produce(t, userEvent(contract.UserRegistered.Declaration, user, 1, `{"user_id":"`+user+`","name":"Mallory"}`))
	w.awaitLetters(t, 1)
}

const signup = `{"user_id":"%s","email":"carol@example.org","name":%s,"registered_at":"2026-11-20T09:30:00Z"}`

func (w *world) parked(t *testing.T, p *page) {
	user := uuid.Must(uuid.NewV7()).String()
	renamed := `{"user_id":"` + user + `","name":"Caroline","renamed_at":"2026-11-20T09:31:00Z"}`
	registered := userEvent(contract.UserRegistered.Declaration, user, 1, fmt.Sprintf(signup, user, "17"))
	w.produce(t, registered, userEvent(contract.UserRenamed.Declaration, user, 2, renamed))
	w.awaitLetters(t, 2)
	mended := fmt.Sprintf(signup, user, `"Carol"`)
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "mended.json"), []byte(mended), 0o600))
}

func (w *world) followed(t *testing.T) { w.awaitLetters(t, 0) }

func (w *world) gap(t *testing.T) {
	user := uuid.Must(uuid.NewV7()).String()
	renamed := `{"user_id":"` + user + `","name":"Caroline","renamed_at":"2026-11-20T09:31:00Z"}`
	w.produce(t, userEvent(contract.UserRegistered.Declaration, user, 1, fmt.Sprintf(signup, user, `"Carol"`)),
		userEvent(contract.UserRenamed.Declaration, user, 3, renamed))
	w.awaitLetters(t, 1)
}

const waitingLetters = `
select count(*) = %d from public.dead_letter
where state = 'waiting' and consumer in ('customer.profile', 'notification.users')`

func (w *world) awaitLetters(t *testing.T, n int) {
	t.Helper()
	w.await(t, w.stack.at.Databases["customer"], fmt.Sprintf(waitingLetters, n))
	w.await(t, w.stack.at.Databases["notification"], fmt.Sprintf(waitingLetters, n))
}

// uncertain leaves the state of a sender that died with a mail on the wire, and waits until another sender finds it.
func (w *world) uncertain(t *testing.T) {
	w.stack.exec(t, w.stack.at.Databases["notification"], `update lease set state = 'submitting', ended_at = null,
		token = gen_random_uuid(), due_at = clock_timestamp() - interval '1 second'
		from mail where mail.event_id = lease.event_id and mail.user_id = $1`, w.users[0])
	w.await(t, w.stack.at.Databases["notification"], `select count(*) = 1 from lease where state = 'uncertain'`)
}

func (w *world) scheduled(t *testing.T) {
	w.stack.exec(t, w.stack.at.Databases["customer"], `
		insert into outbox_scheduled (name, due_at, event_type, source, topic, key, data_schema, payload)
		values ('reminder 17', clock_timestamp() + interval '1 hour', 'reminder-due.v1',
		'/customer', 'customer.reminders.v1', '17', '', '{}')`)
}

func (w *world) morePartitions(t *testing.T) {
	settings := sarama.NewConfig()
	settings.Version = sarama.V3_6_0_0
	admin, err := sarama.NewClusterAdmin([]string{w.broker.Addr()}, settings)
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close()) }()
	require.NoError(t, admin.CreatePartitions(contract.TopicUsers, 12, nil, false))
	w.users = append(w.users, w.stack.signUp(t, "zoe@example.org"))
}

func (w *world) handled(t *testing.T) {
	w.await(t, w.stack.at.Databases["customer"], fmt.Sprintf(`select exists (select from profile where user_id = '%s')`,
		w.users[len(w.users)-1]))
	testkit.Until(t, func() bool {
		status, _ := servicetest.Get(t, "http://"+w.stack.at.Services["customer"].Admin+"/readyz")
		return status == http.StatusOK
	})
}

func (w *world) await(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	testkit.Until(t, func() bool {
		var reached bool
		return conn.QueryRow(t.Context(), sql).Scan(&reached) == nil && reached
	}, sql)
}
