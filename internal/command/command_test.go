package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/command"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return pgtest.New(t, migrations.Outbox, migrations.Command)
}

func answer(ctx context.Context, pool *pgxpool.Pool, fingerprint string, keep time.Duration) (command.Answer, error) {
	claim := command.Claim{Scope: "test", Key: "k", Fingerprint: []byte(fingerprint)}
	return command.Transaction{Pool: pool, Timeout: time.Minute}.Once(ctx, claim, keep,
		func(context.Context, pgx.Tx, *pgx.Batch) (command.Answer, error) {
			return command.Answer{Status: 201, Body: []byte(fingerprint)}, nil
		})
}

func TestACommandOutlivesItsRequest(t *testing.T) {
	t.Parallel()
	pool := open(t)
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	first, err := answer(gone, pool, "a", time.Hour)
	require.NoError(t, err)
	again, err := answer(t.Context(), pool, "a", time.Hour)
	require.NoError(t, err)
	require.Equal(t, first, again)
	_, err = answer(t.Context(), pool, "b", time.Hour)
	require.ErrorIs(t, err, command.ErrKeyReused)

	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err = answer(late, pool, "c", time.Hour)
	require.ErrorIs(t, err, context.DeadlineExceeded, "its deadline holds")
}

func TestACommandIsDoneOncePerKey(t *testing.T) {
	t.Parallel()
	pool := open(t)
	refused, done := errors.New("refused"), 0
	once := func(key string, refuse error) error {
		whole := command.Transaction{Pool: pool, Timeout: time.Minute}
		_, err := whole.Once(t.Context(), command.Claim{Scope: "test", Key: key, Fingerprint: []byte{}}, time.Hour,
			func(_ context.Context, _ pgx.Tx, writes *pgx.Batch) (command.Answer, error) {
				done++
				writes.Queue(`create table if not exists kept ()`)
				return command.Answer{Status: 200, Body: []byte{}}, refuse
			})
		return err
	}
	require.NoError(t, once("", nil))
	require.NoError(t, once("", nil))
	require.Equal(t, 2, done)
	require.Equal(t, refused, once("k", refused))
	require.NoError(t, once("k", nil))
	require.NoError(t, once("k", nil))
	require.Equal(t, 4, done, "the last one was answered by the one before")
	var keys int
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from idempotency_key`).Scan(&keys))
	require.Equal(t, 1, keys)
}

func TestOneRequestWorksUnderAKey(t *testing.T) {
	t.Parallel()
	pool := open(t)
	refused := errors.New("refused")
	first := command.Transaction{Pool: pool, Timeout: time.Minute}
	_, err := first.Once(t.Context(), command.Claim{Scope: "test", Key: "k"}, time.Hour,
		func(context.Context, pgx.Tx, *pgx.Batch) (command.Answer, error) {
			_, err := answer(t.Context(), pool, "a", time.Hour)
			require.ErrorIs(t, err, command.ErrKeyInFlight)
			require.EqualValues(t, 409, command.Problem(err).Status)
			return command.Answer{}, refused
		})
	require.Equal(t, refused, err)
	_, err = answer(t.Context(), pool, "a", time.Hour)
	require.NoError(t, err)
}

func TestAFailedCommitIsUnknown(t *testing.T) {
	t.Parallel()
	pool := open(t)
	_, err := pool.Exec(t.Context(), `create table doomed (id int primary key deferrable initially deferred)`)
	require.NoError(t, err)
	twice := command.Transaction{Pool: pool, Timeout: time.Minute}
	err = twice.Run(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into doomed values (1), (1)`)
		return err
	})
	require.ErrorIs(t, err, command.ErrOutcomeUnknown)
	err = twice.Run(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		_, _ = tx.Exec(ctx, `select 1/0`)
		return nil
	})
	require.ErrorIs(t, err, pgx.ErrTxCommitRollback)
	require.NotErrorIs(t, err, command.ErrOutcomeUnknown)
	own := errors.New("own")
	err = twice.Run(t.Context(), func(context.Context, pgx.Tx) error { return own })
	require.Equal(t, own, err)
	require.Nil(t, command.Problem(err), "what it means is the service's to say")
}

func TestWhatHasExpiredIsForgotten(t *testing.T) {
	t.Parallel()
	pool := open(t)
	_, err := pool.Exec(t.Context(), `
		insert into idempotency_key (scope, key, fingerprint, status, body, expires_at)
		select 'test', n::text, '', 200, '', clock_timestamp() - interval '1 s' from generate_series(1, 2500) n`)
	require.NoError(t, err)
	_, err = answer(t.Context(), pool, "a", time.Hour)
	require.NoError(t, err)
	require.NoError(t, command.Forget(t.Context(), pgtest.Bounded(t, pool), command.DeleteExpiredAnswers))
	var left int
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from idempotency_key`).Scan(&left))
	require.Equal(t, 1, left)
	require.ErrorContains(t, command.Forget(t.Context(), pool, `delete from nowhere`, command.DeleteExpiredAnswers),
		"delete expired rows")

	_, err = pool.Exec(t.Context(), `create table called (page bigint)`)
	require.NoError(t, err)
	require.NoError(t, command.Forget(t.Context(), pool, `insert into called values ($1)`))
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from called`).Scan(&left))
	require.Equal(t, 1, left, "rows that expire one by one do not keep it busy")
}

func TestAnAnswerHasMetadata(t *testing.T) {
	t.Parallel()
	pool := open(t)
	once := func(key, metadata string) (command.Answer, error) {
		claim := command.Claim{Scope: "test", Key: key, Fingerprint: []byte{}}
		return command.Transaction{Pool: pool, Timeout: time.Minute}.Once(t.Context(), claim, time.Hour,
			func(context.Context, pgx.Tx, *pgx.Batch) (command.Answer, error) {
				return command.Answer{Status: 201, Body: []byte{}, Metadata: json.RawMessage(metadata)}, nil
			})
	}
	for range 2 {
		answer, err := once("k", `{"order": "7"}`)
		require.NoError(t, err)
		require.JSONEq(t, `{"order":"7"}`, string(answer.Metadata))
	}
	long := fmt.Sprintf(`{"long": %q}`, strings.Repeat("x", command.MaxMetadataBytes))
	for _, wrong := range []string{long, `[]`, `null`} {
		_, err := once("wrong", wrong)
		require.ErrorIs(t, err, command.ErrMetadata, wrong)
	}
	var rows int
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from idempotency_key`).Scan(&rows))
	require.Equal(t, 1, rows)
}
