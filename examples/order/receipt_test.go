package order

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
)

func TestOldReceiptsArePurged(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for range 2 {
		require.Equal(t, inbox.Applied, s.consume(t, told(t, newPayment(s.place(t), price))))
	}
	_, err := s.pool.Exec(t.Context(), `update lease set state = 'done', ended_at = clock_timestamp() - interval '2 h'
		where event_id = (select event_id from receipt limit 1)`)
	require.NoError(t, err)
	cfg := Config{Mail: lease.DefaultSettings()}
	cfg.Mail.Retention = time.Hour
	mails, err := newReceipts(&eventing.Node{Pool: s.pool, Admin: service.NewAdmin(service.AdminConfig{})}, cfg)
	require.NoError(t, err)
	require.NoError(t, mails.Purge(t.Context()))
	require.Equal(t, 1, s.count(t, `select count(*) from receipt join lease using (event_id) where state = 'pending'`))
	require.Equal(t, 1, s.count(t, `select count(*) from receipt`))
}
