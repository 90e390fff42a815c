package main

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/mailbox"
	"example.com/twinbox/examples/order"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/servicetest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

func TestMigrateTopicsServe(t *testing.T) {
	t.Parallel()
	var program servicetest.Run = order.Service.Main
	mails, err := mailbox.Start(t.Context(), mailbox.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, mails.Close()) })
	environment := []string{
		"DATABASE_URL=" + pgtest.DSN(pgtest.New(t)), // empty: migrating is part of the test
		"KAFKA_BROKERS=" + kafkatest.Brokers(t)[0],
		"ENVIRONMENT=" + strings.ToLower(rand.Text()),
		"HTTP_ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0", "SMTP_ADDR=" + mails.SMTPAddr(),
	}
	reads := []string{"payments.payments.v1"}
	program.Life(t, environment, "order/0001_", "order.orders.v1", reads, func(s servicetest.Serving) {
		require.Equal(t, http.StatusNotFound, servicetest.Status(t, "http://"+s.API+"/nothing"))
	})
}
