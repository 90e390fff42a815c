package admin_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/ops/admin"
)

// restored is a service's answer to a confirmation.
type restored struct {
	events int
	err    error
	asked  []bool // whether for a dry run
}

func (r *restored) ConfirmRestore(ctx context.Context, tx pgx.Tx, dryRun bool, progress func(int64)) (int, error) {
	r.asked = append(r.asked, dryRun)
	progress(int64(r.events))
	if r.err != nil {
		return 0, r.err
	}
	_, err := tx.Exec(ctx, `update public.outbox_cursor set restored = null`)
	return r.events, err
}

func TestARestoreIsConfirmed(t *testing.T) {
	t.Parallel()
	fake := &restored{events: 3}
	b := setup(t, func(c *admin.Config, _ *http.Server) { c.Restore = fake })
	_, err := b.pool.Exec(t.Context(), `update outbox_cursor set restored = 'the broker knows more'`)
	require.NoError(t, err)
	const path = "/admin/v1/outbox/restore/confirm"
	ask := func(body string) (int, string) {
		status, answer := b.operate(t, http.MethodPost, path, body)
		return status, string(answer)
	}
	pending := func() (n int) {
		require.NoError(t, b.pool.QueryRow(t.Context(),
			`select count(*) from outbox_cursor where restored is not null`).Scan(&n))
		return n
	}
	status, answer := ask(`{"by":"ada","reason":"drill","dry_run":true}`)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, answer, `"count":3`)
	require.Equal(t, 1, pending(), "a dry run changes nothing")

	fake.err = errors.Join(kafka.ErrGroupActive, errors.New("group local.customer.profile"))
	status, answer = ask(`{"by":"ada","reason":"drill","dry_run":false}`)
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, answer, `"consuming"`)
	require.Equal(t, 1, pending())

	fake.err = nil
	status, answer = ask(`{"by":"ada","reason":"drill","dry_run":false}`)
	require.Equal(t, http.StatusOK, status, answer)
	require.Contains(t, answer, `"count":3`)
	require.Zero(t, pending())
	require.Equal(t, []bool{true, false, false}, fake.asked)
	var by, reason string
	var count int64
	require.NoError(t, b.pool.QueryRow(t.Context(),
		`select operator, reason, affected from operator_action where verb = 'confirm_restore'`).Scan(&by, &reason, &count))
	require.Equal(t, []any{"ada", "drill", int64(3)}, []any{by, reason, count})
}
