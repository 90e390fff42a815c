// Package cmd_test runs the examples' programs. Hello has a test of its own, which new-service copies.
package cmd_test

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/mailbox"
	"example.com/twinbox/examples/ledger"
	"example.com/twinbox/examples/order"
	"example.com/twinbox/examples/payments"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/servicetest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

func TestMigrateTopicsServe(t *testing.T) {
	t.Parallel()
	mails, err := mailbox.Start(t.Context(), mailbox.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, mails.Close()) })
	for name, c := range map[string]struct {
		program servicetest.Run
		writes  string
		reads   []string
		environ []string
	}{
		"order": {
			program: order.Service.Main, writes: "order.orders.v1", reads: []string{"payments.payments.v1"},
			environ: []string{"SMTP_ADDR=" + mails.SMTPAddr()},
		},
		"payments": {program: payments.Service.Main, writes: "payments.payments.v1"},
		"ledger":   {program: ledger.Service.Main, writes: "ledger.accounts.v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ := append([]string{
				"DATABASE_URL=" + pgtest.DSN(pgtest.New(t)), // empty: migrating is part of the test
				"KAFKA_BROKERS=" + kafkatest.Brokers(t)[0], "ENVIRONMENT=" + strings.ToLower(rand.Text()),
				"HTTP_ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0",
			}, c.environ...)
			c.program.Life(t, environ, name+"/0001_", c.writes, c.reads, func(s servicetest.Serving) {
				require.Equal(t, http.StatusNotFound, servicetest.Status(t, "http://"+s.API+"/nothing"))
			})
		})
	}
}
