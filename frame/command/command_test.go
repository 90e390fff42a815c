package command_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/pgtest"
	"example.com/twinbox/frame/command"
	"example.com/twinbox/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return pgtest.New(t, migrations.ForCustomer()...)
}

// answer is a command that is asked for under a key: it makes an answer once.
func answer(ctx context.Context, pool *pgxpool.Pool, fingerprint string, keep time.Duration) (command.Answer, error) {
	claim := command.Claim{Scope: "test", Key: "k", Fingerprint: []byte(fingerprint)}
	first := &pgx.Batch{}
	claim.Queue(first)
	var answer command.Answer
	err := command.Transaction{Pool: pool, Timeout: time.Minute, First: first}.Run(ctx,
		func(ctx context.Context, tx pgx.Tx) error {
			given, found, err := claim.Given()
			if answer = given; err != nil || found {
				return err
			}
			answer = command.Answer{Status: 201, Body: []byte(fingerprint)}
			writes := &pgx.Batch{}
			claim.Store(writes, answer, keep)
			return tx.SendBatch(ctx, writes).Close()
		})
	return answer, err
}

// A client that has hung up decides nothing: the command is committed, and a retry finds its answer.
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

func TestOneRequestWorksUnderAKey(t *testing.T) {
	t.Parallel()
	pool := open(t)
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		(&command.Claim{Scope: "test", Key: "k"}).Queue(batch)
		require.NoError(t, tx.SendBatch(t.Context(), batch).Close())
		_, err := answer(t.Context(), pool, "a", time.Hour)
		require.ErrorIs(t, err, command.ErrKeyInFlight)
		require.EqualValues(t, 409, command.Problem(err).Status)
		return nil
	}))
	_, err := answer(t.Context(), pool, "a", time.Hour)
	require.NoError(t, err)
}

// A commit that fails is an unknown outcome; what fails before it is the command's own error.
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
	own := errors.New("own")
	err = twice.Run(t.Context(), func(context.Context, pgx.Tx) error { return own })
	require.Equal(t, own, err)
	require.Nil(t, command.Problem(err), "what it means is the service's to say")
}

// More rows than a statement deletes at once are forgotten all the same, and no others.
func TestWhatHasExpiredIsForgotten(t *testing.T) {
	t.Parallel()
	pool := open(t)
	_, err := pool.Exec(t.Context(), `
		insert into idempotency_key (scope, key, fingerprint, status, body, expires_at)
		select 'test', n::text, '', 200, '', clock_timestamp() - interval '1 s' from generate_series(1, 2500) n`)
	require.NoError(t, err)
	_, err = answer(t.Context(), pool, "a", time.Hour)
	require.NoError(t, err)
	require.NoError(t, command.Forget(t.Context(), pool, command.DeleteExpiredAnswers))
	var left int
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from idempotency_key`).Scan(&left))
	require.Equal(t, 1, left)
	require.ErrorContains(t, command.Forget(t.Context(), pool, `delete from nowhere`, command.DeleteExpiredAnswers),
		"delete expired rows")
}
