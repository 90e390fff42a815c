package main

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/mailbox"
	"example.com/twinbox/internal/notification"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/servicetest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

var program servicetest.Run = notification.Service.Main

func TestMigrateTopicsServe(t *testing.T) {
	t.Parallel()
	mails, err := mailbox.Start(t.Context(), mailbox.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, mails.Close()) })
	environ := []string{
		"DATABASE_URL=" + pgtest.DSN(pgtest.New(t)), // empty: migrating is part of the test
		"KAFKA_BROKERS=" + kafkatest.Brokers(t)[0],
		"VERIFICATION_SECRET=0123456789abcdef0123456789abcdef",
		"ENVIRONMENT=" + strings.ToLower(rand.Text()),
		"SMTP_ADDR=" + mails.SMTPAddr(), // readiness asks it
		"ADMIN_ADDR=127.0.0.1:0",
	}
	reads := []string{"customer.users.v1"}
	program.Life(t, environ, "notification/0001_", "notification.mails.v1", reads, func(s servicetest.Serving) {
		require.Empty(t, s.API)
	})
}

func TestABrokenEnvironmentIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	addr, connected := servicetest.Trap(t)
	program.Refuses(t, []string{ // one problem per line
		"DATABASE_URL=postgres://u:hunter2@" + addr + "/notification?sslmode=maybe",
		"KAFKA_BROKERS=" + addr + ",",
		"VERIFICATION_SECRET=hunter2",
		"SMTP_ADDR=mail",
		"MAIL_FROM=postmaster",
		"MAIL_LEASE=1s", // shorter than the default SMTP_TIMEOUT: a cross check
		"PUBLIC_URL=ftp://example.org",
		"MAIL_WORKER=5",
	}, []string{
		"DATABASE_URL: is not", "KAFKA_BROKERS: entry 2 is not", "VERIFICATION_SECRET: is out of bounds",
		"SMTP_ADDR: is not", "MAIL_FROM: is not", "MAIL_LEASE: ", "PUBLIC_URL: is not", "MAIL_WORKER: nothing reads it",
	}, "hunter2")
	program.Refuses(t, nil, []string{
		"DATABASE_URL: is required", "KAFKA_BROKERS: is required", "VERIFICATION_SECRET: is required",
		"SMTP_ADDR: is required",
	}, "hunter2")
	require.Empty(t, connected, "nothing was dialled")
}
