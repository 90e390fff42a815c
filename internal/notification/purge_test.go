package notification

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/lease"
)

func TestOldMailsArePurged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sender = b.newSender(t, func(s *Sender) { s.settings.Retention = time.Hour })
	b.register(t)
	b.start(t)
	b.awaitState(t, string(lease.Done))
	exec := func(sql string) {
		_, err := b.pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	exec(`update lease set ended_at = ended_at - interval '2 h'`)
	exec(`insert into mail (id, event_id, template, user_id, recipient)
		select gen_random_uuid(), 'e2', template, user_id, recipient from mail`)
	exec(`insert into lease (handler, event_id, state, ended_at)
		values ('` + handlerVerification + `', 'e2', 'uncertain', clock_timestamp() - interval '2 h')`)
	exec(`insert into mail (id, event_id, template, user_id, recipient)
		select gen_random_uuid(), 'e3', template, user_id, recipient from mail limit 1`)
	exec(`insert into lease (handler, event_id, state, ended_at)
		values ('` + handlerVerification + `', 'e3', 'skipped', clock_timestamp() - interval '2 h')`)
	require.NoError(t, b.sender.Purge(t.Context()))
	require.Equal(t, 1, b.count(t, `select count(*) from lease`))
	require.Equal(t, 1, b.count(t, `select count(*) from mail where event_id = 'e2'`))
	require.Equal(t, 1, b.count(t, `select count(*) from mail`))
}
