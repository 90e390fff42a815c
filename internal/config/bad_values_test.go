package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
)

func TestLoad_BadValues(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{
		"DATABASE_URL=",
		"SMTP_ADDR= mail:25",
		"SMTP_ADDR=\u00a0mail:25",
		`SMTP_ADDR="mail:25"`,
		"SMTP_ADDR=ma\x00il:25",
		"SMTP_ADDR=mail\xff:25",
		"OUTBOX_LEASE=5",
		"OUTBOX_LEASE=1d",
		"DATABASE_POOL_SIZE=0x10",
		"SMTP_TLS=yes",
		"KAFKA_BROKERS=,a:9092",
		"KAFKA_BROKERS=a:9092, b:9092",
		"KAFKA_BROKERS=a",
		"KAFKA_BROKERS=:9092",
		"KAFKA_BROKERS=::1:9092",
		"KAFKA_NAMES=a,,b",
		"HTTP_ADDR=:http",
		"HTTP_ADDR=ho st:80",
		"PUBLIC_URL=localhost:8080",
		"PUBLIC_URL=http://",
		"PUBLIC_URL=http://u:p@a",
		"PUBLIC_URL=http://a?x=1",
		"KAFKA_BROKERS=u@a:80",
		"PUBLIC_URL=http://example.org/a b",
		"PUBLIC_URL=http://example.org\\@evil.example",
		"TRUSTED_PROXIES=10.0.0.1",
		"TRUSTED_PROXIES=10.0.0.1/8",
		"TRUSTED_PROXIES=0.0.0.0/0",
		"TRUSTED_PROXIES=::ffff:10.0.0.0/104",
		"TRUSTED_PROXIES=10.0.0.0/8,::/0",
		"ADMIN_HOSTS=a:80",
		"ADMIN_HOSTS=*",
		"ADMIN_TOKEN=" + strings.Repeat("k", 31) + " x",
		"ADMIN_TOKEN=" + strings.Repeat("ü", 32),
		"MAIL_FROM=postmaster",
		"MAIL_FROM=\u202eknaB <a@example.org>",
		"ENVIRONMENT=Prod",
		"DATABASE_URL=db/customer",
		"DATABASE_URL=postgres://u:p@db",
		"DATABASE_URL=postgres:///customer",
		"DATABASE_URL=postgres://db/customer?sslmode=maybe",
		"DATABASE_URL=postgres://u:p@db:99999/customer",
		"DATABASE_URL=postgres://u:p@db/customer#x",
		"DATABASE_URL=postgres://u:p@d\u202eb/customer",
		"DATABASE_URL=postgres://db/customer?pool_max_conns=many",
		"VERIFICATION_SECRET=" + strings.Repeat("k", 65),
	} {
		t.Run(fmt.Sprintf("%.40q", setting), func(t *testing.T) {
			t.Parallel()
			variable, _, _ := strings.Cut(setting, "=")
			require.Equal(t, []string{variable}, load(t, valid(setting), new(sample)))
		})
	}
}

func TestLoad_AllBadEntriesOfAList(t *testing.T) {
	t.Parallel()
	const address = "is not host:port (an IPv6 address goes in brackets)"
	require.Equal(t, []config.Problem{
		{"KAFKA_BROKERS", "entry 2 " + address + "; entry 3 " + address + "; entry 4 " + address},
		{"KAFKA_NAMES", "entry 2 is empty"},
	}, problems(t, valid("KAFKA_BROKERS=a:1,,hunter2, b:1,c:1", "KAFKA_NAMES=a,,b"), new(sample)))
}

func TestLoad_WhatAProblemSays(t *testing.T) {
	t.Parallel()
	const postgres = "postgres://user:password@host:port/database (percent-encode special characters)"
	for setting, want := range map[string]string{
		"OUTBOX_LEASE=999ms":                    "is out of bounds: 1s to 5m",
		"OUTBOX_POLL=0s":                        "is out of bounds",
		"DATABASE_POOL_SIZE=0":                  "is out of bounds: 1 to 1000",
		"VERIFICATION_SECRET=k":                 "is out of bounds: 32 to 64 bytes",
		"OUTBOX_LEASE=5":                        "unable to parse duration: time: missing unit in duration \"5\"",
		"DATABASE_POOL_SIZE=x":                  "strconv.ParseInt: parsing \"x\": invalid syntax",
		"SMTP_TLS=yes":                          "strconv.ParseBool: parsing \"yes\": invalid syntax",
		"INBOX_CONFLICT=ignore":                 "is not one of error, warn",
		"INBOX_CONFLICT=":                       "is set to nothing; unset it or give it a value",
		"INBOX_CONFLICT=warn\r":                 "has blanks or line ends around it, or characters that do not show",
		"INBOX_CONFLICT='warn'":                 "has quotes around it, which would become part of it",
		"DATABASE_URL=postgres://u:hunter2@%/x": "is not " + postgres,
		"INBOX_CONFLICTS=warn":                  "nothing reads it",
	} {
		found := problems(t, valid(setting), new(sample))
		require.Len(t, found, 1, setting)
		require.Equal(t, want, found[0].Detail, setting)
	}
}
