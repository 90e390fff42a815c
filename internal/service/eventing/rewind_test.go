package eventing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kfake"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

type backward struct {
	pool    *pgxpool.Pool
	brokers []string
	cfg     eventing.Config
	topic   string
	said    *lines
	sent    map[string]int64
}

func newBackward(t *testing.T, brokers []string) *backward {
	t.Helper()
	s := &backward{
		pool: pgtest.New(t, sets...), brokers: brokers, topic: kafkatest.Group(t), said: &lines{}, sent: map[string]int64{},
	}
	execute(t, s.pool, `create table ledger (n bigserial, event_id text, key text, version bigint)`)
	s.cfg = environ(t, pgtest.DSN(s.pool), brokers[0], "KAFKA_TOPIC_PARTITIONS=2", "INBOX_RETRY_MIN=1ms")
	ensureTopic(t, s.cfg, s.topic)
	return s
}

func (s *backward) start(t *testing.T) (stop func()) {
	t.Helper()
	b := openWith(t, slog.New(slog.NewTextHandler(s.said, nil)), s.cfg)
	b.consume(t, eventing.Consumer{
		Name: repeatedConsumer, Topic: s.topic, Order: inbox.Strict,
		Handlers: pings(func(ctx context.Context, tx pgx.Tx, e event.Event, _ pinged) error {
			const note = `insert into ledger (event_id, key, version) values ($1, $2, $3)`
			return inbox.Queue(ctx, tx, note, e.ID, e.Key, e.Version)
		}),
	})
	return b.serve(t)
}

func (s *backward) send(t *testing.T, n int) (sent []event.Event) {
	t.Helper()
	for range n {
		for k := range 6 {
			key := fmt.Sprint("key-", k)
			s.sent[key]++
			sent = append(sent, event.Event{
				ID: fmt.Sprintf("%s/%d", key, s.sent[key]), Source: "/test", Type: "test.pinged.v1", Key: key,
				Version: s.sent[key], Time: time.Now(), Data: []byte(`{"n":1}`),
			})
		}
	}
	s.write(t, sent)
	return sent
}

// A broker gives records different times.
func (s *backward) write(t *testing.T, events []event.Event) {
	t.Helper()
	now := time.Now()
	records := make([]*sarama.ProducerMessage, len(events))
	for i, e := range events {
		var err error
		records[i], err = kafka.Marshaler{}.Marshal(s.topic, e.Message())
		require.NoError(t, err)
		records[i].Timestamp = now.Add(time.Duration(i) * time.Millisecond)
	}
	sendRaw(t, s.brokers, records...)
}

// rewoundTables are in the order in which the inbox locks them.
var rewoundTables = []string{"inbox_point", "inbox_key", "inbox", "ledger", "inbox_attempt", "inbox_owner"}

func (s *backward) save(t *testing.T) {
	t.Helper()
	require.NoError(t, pgx.BeginTxFunc(t.Context(), s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead},
		func(tx pgx.Tx) error {
			for _, table := range rewoundTables {
				_, err := tx.Exec(t.Context(), `create table saved_`+table+` as table `+table)
				require.NoError(t, err)
			}
			return nil
		}))
}

// The consumer may hold its locks in another order.
func (s *backward) goBack(t *testing.T) {
	t.Helper()
	testkit.Until(t, func() bool {
		err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `lock table `+strings.Join(rewoundTables, ", "))
			for _, table := range rewoundTables {
				if err == nil {
					_, err = tx.Exec(t.Context(), `delete from `+table+`; insert into `+table+` table saved_`+table)
				}
			}
			return err
		})
		if answer, is := errors.AsType[*pgconn.PgError](err); is && answer.Code == "40P01" {
			return false
		}
		require.NoError(t, err)
		return true
	})
}

func (s *backward) awaitEffects(t *testing.T) {
	t.Helper()
	want := 0
	for _, version := range s.sent {
		want += int(version)
	}
	testkit.Until(t, func() bool { return s.count(t, `select count(distinct event_id) from ledger`) == want })
}

func (s *backward) count(t *testing.T, sql string) (n int) {
	t.Helper()
	require.NoError(t, s.pool.QueryRow(t.Context(), sql).Scan(&n))
	return n
}

func (s *backward) requireOnceInOrder(t *testing.T) {
	t.Helper()
	s.awaitEffects(t)
	require.Zero(t, s.count(t, `select count(*) - count(distinct event_id) from ledger`))
	require.Zero(t, s.count(t, `select count(*) from (
		select version, lag(version) over (partition by key order by n) as before from ledger) l where before >= version`))
	require.Zero(t, s.count(t, `select count(*) from dead_letter where state = 'waiting'`))
	for key, version := range s.sent {
		require.EqualValues(t, version, s.count(t, `select version from inbox_key where key = '`+key+`'`))
	}
	require.Zero(t, s.said.count("attempt failed"))
}

func TestEffectsComeAgainAfterTheDatabaseWentBack(t *testing.T) {
	t.Parallel()
	for name, meet := range map[string]func(t *testing.T, s *backward){
		"while events come": func(t *testing.T, s *backward) {
			t.Helper()
			s.start(t)
			s.send(t, 3)
			s.awaitEffects(t)
			s.save(t)
			for i := range 6 {
				s.send(t, 2)
				if i == 3 {
					s.awaitEffects(t)
					s.goBack(t)
				}
			}
		},
		"while none come": func(t *testing.T, s *backward) {
			t.Helper()
			s.start(t)
			s.send(t, 3)
			s.awaitEffects(t)
			s.save(t)
			s.send(t, 3)
			s.awaitEffects(t)
			s.goBack(t)
		},
		"while it is down": func(t *testing.T, s *backward) {
			t.Helper()
			stop := s.start(t)
			s.send(t, 3)
			s.awaitEffects(t)
			s.save(t)
			s.send(t, 3)
			s.awaitEffects(t)
			stop()
			s.goBack(t)
			s.send(t, 1)
			s.start(t)
		},
		"to the time before its first event": func(t *testing.T, s *backward) {
			t.Helper()
			s.save(t)
			stop := s.start(t)
			s.send(t, 3)
			s.awaitEffects(t)
			stop()
			s.goBack(t)
			s.start(t)
		},
		"and a partition changed its owner": func(t *testing.T, s *backward) {
			t.Helper()
			stop := s.start(t)
			s.start(t)
			s.send(t, 3)
			s.awaitEffects(t)
			s.save(t)
			s.send(t, 3)
			s.awaitEffects(t)
			s.goBack(t)
			stop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newBackward(t, kafkatest.Brokers(t))
			meet(t, s)
			s.requireOnceInOrder(t)
			require.Positive(t, s.said.count("the database went back"))
			require.Zero(t, s.said.count("the broker went back"))
		})
	}
}

func TestEffectsComeOnceAfterTheBrokerWentBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ more, databaseToo bool }{
		"below the offset":                      {more: false},
		"above the offset":                      {more: true},
		"below, and the database went back too": {databaseToo: true},
		"above, and the database went back too": {more: true, databaseToo: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, port := t.TempDir(), freePort(t)
			start := func() *kfake.Cluster {
				cluster, _ := kafkatest.Fake(t, kfake.DataDir(dir), kfake.Ports(port))
				return cluster
			}
			cluster := start()
			s := newBackward(t, cluster.ListenAddrs())
			s.send(t, 2)
			cluster.Close()
			kept := filepath.Join(t.TempDir(), "partitions")
			require.NoError(t, os.CopyFS(kept, os.DirFS(filepath.Join(dir, "partitions"))))

			cluster = start()
			stop := s.start(t)
			s.awaitEffects(t)
			if test.databaseToo {
				s.save(t)
			}
			lost := s.send(t, 3)
			s.awaitEffects(t)
			stop()
			cluster.Close()
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "partitions")))
			require.NoError(t, os.CopyFS(filepath.Join(dir, "partitions"), os.DirFS(kept)))
			cluster = start()
			if test.databaseToo {
				s.goBack(t)
			}
			if test.more {
				s.writeKeyByKey(t, lost[:12])
				s.send(t, 1)
				s.writeKeyByKey(t, lost)
				s.send(t, 1)
			} else {
				s.writeKeyByKey(t, lost[:6])
			}
			stop = s.start(t)
			if !test.more {
				s.writeKeyByKey(t, lost)
				s.send(t, 1)
			}
			s.requireOnceInOrder(t)
			require.Positive(t, s.said.count("the broker went back")+s.said.count("the database went back"))
			stop()
			cluster.Close()
		})
	}
}

func (s *backward) writeKeyByKey(t *testing.T, events []event.Event) {
	t.Helper()
	for k := 5; k >= 0; k-- {
		var ofKey []event.Event
		for _, e := range events {
			if e.Key == fmt.Sprint("key-", k) {
				ofKey = append(ofKey, e)
			}
		}
		s.write(t, ofKey)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	_, port, err := net.SplitHostPort(testkit.ReservePort(t))
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	return number
}

// An installation of 0.1.0 has offsets and no points.
func TestADatabaseWithoutPointsIsReadAgain(t *testing.T) {
	t.Parallel()
	s := newBackward(t, kafkatest.Brokers(t))
	stop := s.start(t)
	s.send(t, 3)
	s.awaitEffects(t)
	stop()
	execute(t, s.pool, `delete from inbox_point`)
	s.start(t)
	s.send(t, 2)
	s.requireOnceInOrder(t)
	require.Equal(t, 30, s.count(t, `select sum(next_offset)::int from inbox_point`))
	require.Positive(t, s.said.count("outcome=duplicate"))
}
