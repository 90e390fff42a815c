package verify_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/verify"
	"example.com/twinbox/test/pgtest"
)

func TestARoleThatMayReadIsEnough(t *testing.T) {
	t.Parallel()
	s := settled(t)
	role := "verifier_" + s.pool.Config().ConnConfig.Database
	_, err := s.pool.Exec(t.Context(), "create role "+role+" login; grant pg_read_all_data to "+role)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := s.pool.Exec(context.WithoutCancel(t.Context()), "drop role "+role)
		require.NoError(t, err)
	})
	dsn, err := url.Parse(pgtest.DSN(s.pool))
	require.NoError(t, err)
	dsn.User = url.User(role)
	parameters := dsn.Query()
	parameters.Set("pool_max_conns", "4") // as in a service's URL
	dsn.RawQuery = parameters.Encode()
	cfg := s.config()
	cfg.Database = dsn.String()
	requireWhole(t, run(t, cfg))

	cfg.Checks = []verify.Check{{Name: "writes", SQL: `delete from inbox returning event_id, '', 0, ''`}}
	_, err = verify.Run(t.Context(), cfg)
	require.Error(t, err)
}

func TestAnAddressThatIsNoneIsNotRepeated(t *testing.T) {
	t.Parallel()
	_, err := verify.Run(t.Context(), verify.Config{Service: verify.Service{Database: "postgres://u:secret@h:x/"}})
	require.ErrorContains(t, err, "not a PostgreSQL URL")
	require.NotContains(t, err.Error(), "secret")
}

func TestAnInventedEventIsReportedWithItsType(t *testing.T) {
	t.Parallel()
	s := settled(t)
	e := event.Event{
		ID: "invented", Source: source, Type: "com.example.unknown.v1", Key: "stranger", Version: 1, Data: []byte("{}"),
	}
	e.Time = s.event(t, s.add(t, "key-0")[0]).Time
	s.publish(t)
	s.lay(t, e, -1)
	verdict := s.verify(t)
	require.Equal(t, "1 invented", verdict.Summary())
	f := verdict.Findings[0]
	require.Equal(t, []string{"invented", "com.example.unknown.v1", "stranger"}, []string{f.EventID, f.Type, f.Key})
}

func TestAGroupWithoutOffsets(t *testing.T) {
	t.Parallel()
	s := settled(t)
	cfg := s.config()
	cfg.Consumers = cfg.Consumers[:1]
	cfg.Consumers[0].Group = "another"
	s.exec(t, `delete from inbox where event_id = (select event_id::text from outbox where position = 1)`)
	verdict := run(t, cfg)
	requireClean(t, verdict)
	require.EqualValues(t, 8, verdict.Consumed[0].Pending)
	ends, err := s.ends(t.Context())
	require.NoError(t, err)
	for p, end := range ends {
		s.exec(t, `insert into inbox_point (consumer, topic, partition, next_offset, time) values ($1, $2, $3, $4, 0)`,
			consumer, s.topic, p, end)
	}
	verdict = run(t, cfg)
	require.Equal(t, []verify.Rule{"V4"}, rulesOf(verdict))
	require.Zero(t, verdict.Consumed[0].Pending)
}

func TestATopicOfEarlierIsCompared(t *testing.T) {
	t.Parallel()
	s := settled(t)
	cfg := s.config()
	cfg.Topics = nil
	requireWhole(t, run(t, cfg))
	s.exec(t, `update outbox set topic = 'gone' where position < 4`)
	verdict := run(t, cfg)
	require.EqualValues(t, 3, reasonOf(verdict, verify.TopicForgot), "%+v", verdict)
}

func TestProgressIsReported(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.add(t, keysOf(500)...)
	s.publish(t)
	cfg := s.config()
	var reported []int64
	cfg.Progress = func(read int64) { reported = append(reported, read) }
	run(t, cfg)
	require.Equal(t, []int64{1000, 2000}, reported, "500 rows, and the records three times")
}
