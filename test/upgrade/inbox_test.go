package upgrade

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

func TestDeadLettersOfTheFirstEditionGoOn(t *testing.T) {
	t.Parallel()
	for service, sets := range map[string][]migrations.Set{
		"customer": migrations.ForCustomer(), "notification": migrations.ForNotification(),
	} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			pool := restore(t, service)
			consumer := map[string]string{"customer": "customer.profile", "notification": "notification.users"}[service]
			c := &successor{pool: pool, consumer: consumer}
			// Version 3 of a key came too early and had no handler; version 2 is missing.
			for _, sql := range []string{
				`insert into inbox_watermark values ('` + consumer + `', 'passed', 1)`,
				`insert into inbox_passed values ('` + consumer + `', 'passed', 3)`,
				`create table effect (n bigint generated always as identity, key text, version bigint, event_id text)`,
			} {
				_, err := pool.Exec(t.Context(), sql)
				require.NoError(t, err)
			}
			_, err := migrations.Apply(t.Context(), pgtest.DSN(pool), sets...)
			require.NoError(t, err)
			c.open(t)

			letters := c.letters(t)
			require.NotEmpty(t, letters)
			for _, l := range letters {
				if l.State != deadletter.Replayed && l.Topic != "" {
					c.deliver(t, l.Key, l.Headers, l.Payload)
				}
			}
			require.Empty(t, c.effects(t), "a dead letter does not run when it comes again")

			for _, l := range letters {
				if l.Code == inbox.CodeGap && l.State == deadletter.Waiting && l.Topic != "" {
					c.deliverVersion(t, string(l.Key), l.Version-1)
				}
			}
			c.deliverVersion(t, "passed", 2)
			noFailure := func(r inbox.Result) { require.Empty(t, r.Code, "%+v", r) }
			all := inbox.Options{Change: audit.Change{By: "test"}, OnResult: noFailure}
			err = c.replayer.Replay(t.Context(), deadletter.Filter{}, all)
			require.NoError(t, err)
			require.NoError(t, c.replayer.ResumeRound(t.Context()))
			require.Zero(t, number(t, pool, `select count(*) from dead_letter where state = 'waiting'`))
			require.Zero(t, number(t, pool, `select count(*) from inbox_key where parked_from is not null`))
			require.EqualValues(t, 3, number(t, pool, `select version from inbox_key where key = 'passed'`))
			require.Zero(t, number(t, pool, `select count(*) from (
				select version, lag(version) over (partition by key order by n) as before from effect) e
				where version <= before`), "in the order of the versions")
			require.Equal(t, number(t, pool, `select count(distinct event_id) from effect`),
				number(t, pool, `select count(*) from effect`), "once")
			require.EqualValues(t, len(waiting(letters)), number(t, pool,
				`select count(*) from effect where event_id not like 'missing%'`), "each that waited")
		})
	}
}

func waiting(letters []deadletter.Letter) (waiting []deadletter.Letter) {
	for _, l := range letters {
		if l.State == deadletter.Waiting && l.Topic != "" {
			waiting = append(waiting, l)
		}
	}
	return waiting
}

type successor struct {
	pool     *pgxpool.Pool
	consumer string
	handle   message.HandlerFunc
	replayer *inbox.Replayer
	offset   int64
}

const versionWithoutHandler = "twinbox.version-without-handler.v1"

func (c *successor) open(t *testing.T) {
	t.Helper()
	in, err := inbox.New(inbox.Config{
		Consumer: c.consumer, Pool: c.pool, Order: inbox.Strict, Log: slog.New(slog.DiscardHandler),
		Accepts: func(eventType string) bool { return eventType != versionWithoutHandler },
	})
	require.NoError(t, err)
	note := func(msg *message.Message) ([]*message.Message, error) {
		tx, _ := inbox.TxFromContext(msg.Context())
		e, _ := inbox.EventFromContext(msg.Context())
		_, err := tx.Exec(msg.Context(), `insert into effect (key, version, event_id) values ($1, $2, $3)`,
			e.Key, e.Version, e.ID)
		return nil, err
	}
	c.handle, c.replayer = in.Middleware(note), inbox.NewReplayer(in, note)
}

func (c *successor) letters(t *testing.T) []deadletter.Letter {
	t.Helper()
	rows, _ := c.pool.Query(t.Context(), `select `+deadletter.Columns+` from dead_letter order by id`)
	letters, err := pgx.CollectRows(rows, deadletter.Scan)
	require.NoError(t, err)
	return letters
}

func (c *successor) effects(t *testing.T) []string {
	t.Helper()
	rows, _ := c.pool.Query(t.Context(), `select event_id from effect order by n`)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return ids
}

func (c *successor) deliver(t *testing.T, key []byte, headers []event.Header, payload []byte) {
	t.Helper()
	c.offset++
	msg := event.RecordMessage(key, headers, payload)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	msg.SetContext(event.WithOrigin(ctx, event.Origin{
		Topic: "again", Offset: c.offset, Key: key, Headers: headers, Time: time.Now(),
	}))
	_, err := c.handle(msg)
	require.NoError(t, err)
}

func (c *successor) deliverVersion(t *testing.T, key string, version int64) {
	t.Helper()
	msg := event.Event{
		ID: fmt.Sprintf("missing-%s-%d", key, version), Source: "/test", Type: "com.example.missing.v1", Key: key,
		Version: version, Time: time.Now(), Data: []byte(`{}`),
	}.Message()
	c.deliver(t, []byte(key), event.MessageHeaders(msg), msg.Payload)
}
