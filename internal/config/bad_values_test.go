package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every line breaks one variable of a valid environment and names the problem.
func TestLoad_BadValues(t *testing.T) {
	t.Parallel()
	cases := []struct{ setting, want string }{
		{"DATABASE_URL=", "empty"},
		{"KAFKA_BROKERS=", "empty"},
		{"OUTBOX_LEASE=", "empty"}, // with a default as well
		{"SMTP_ADDR= mail:25", "surrounding_space"},
		{"SMTP_ADDR=mail:25\r", "surrounding_space"},
		{"SMTP_ADDR=mail:25\n", "surrounding_space"},
		{"SMTP_ADDR=\u00a0mail:25", "surrounding_space"},
		{"SMTP_ADDR=   ", "surrounding_space"},
		{`SMTP_ADDR="mail:25"`, "quoted"},
		{"SMTP_ADDR='mail:25'", "quoted"},
		{"SMTP_ADDR=ma\x00il:25", "not_text"},
		{"SMTP_ADDR=mail\xff:25", "not_text"},
		{"OUTBOX_LEASE=5", "invalid_duration"},
		{"OUTBOX_LEASE=-5s", "out_of_range"},
		{"OUTBOX_LEASE=0", "out_of_range"},
		{"OUTBOX_LEASE=999ms", "out_of_range"},
		{"OUTBOX_LEASE=5m1ns", "out_of_range"},
		{"OUTBOX_LEASE=1d", "invalid_duration"},
		{"OUTBOX_LEASE=5 s", "invalid_duration"},
		{"OUTBOX_LEASE=2629800h", "invalid_duration"}, // 300 years: more than a duration holds
		{"OUTBOX_POLL=0s", "out_of_range"},            // no min: positive
		{"OUTBOX_POLL=-1ns", "out_of_range"},
		{"OUTBOX_POLL=87601h", "out_of_range"}, // no max: ten years
		{"OUTBOX_PAUSE=-1s", "out_of_range"},
		{"INBOX_RETENTION=0s", "out_of_range"},
		{"OUTBOX_MAX_BYTES=9223372036854775808", "out_of_range"},
		{"OUTBOX_MAX_BYTES=-1", "out_of_range"},
		{"DATABASE_POOL_SIZE=0", "out_of_range"},
		{"DATABASE_POOL_SIZE=1000000", "out_of_range"},
		{"DATABASE_POOL_SIZE=0x10", "invalid_integer"},
		{"DATABASE_POOL_SIZE=1_000", "invalid_integer"},
		{"DATABASE_POOL_SIZE=1e3", "invalid_integer"},
		{"DATABASE_POOL_SIZE=+5", "invalid_integer"},
		{"DATABASE_POOL_SIZE=010", "invalid_integer"},
		{"DATABASE_POOL_SIZE=1.5", "invalid_integer"},
		{"DATABASE_POOL_SIZE=\u0661", "invalid_integer"},
		{"SMTP_TLS=yes", "invalid_bool"},
		{"SMTP_TLS=1", "invalid_bool"},
		{"SMTP_TLS=True", "invalid_bool"},
		{"KAFKA_BROKERS=,a:9092,", "empty_entry"},
		{"KAFKA_BROKERS=a:9092,", "empty_entry"},
		{"KAFKA_BROKERS=a:9092,a:9092", "duplicate_entry"},
		{"KAFKA_BROKERS=a:9092, b:9092", "surrounding_space"},
		{"KAFKA_BROKERS=a", "invalid_address"},
		{"KAFKA_BROKERS=a:", "invalid_address"},
		{"KAFKA_BROKERS=:9092", "invalid_address"},
		{"KAFKA_BROKERS=a:0", "invalid_address"},
		{"KAFKA_BROKERS=a:65536", "invalid_address"},
		{"KAFKA_BROKERS=a:09092", "invalid_address"},
		{"KAFKA_BROKERS=::1:9092", "invalid_address"},
		{"KAFKA_BROKERS=kafka://a:9092", "invalid_address"},
		{"KAFKA_BROKERS=a;b:9092", "invalid_address"},
		{"KAFKA_NAMES=a,,b", "empty_entry"},
		{"HTTP_ADDR=8080", "invalid_address"},
		{"HTTP_ADDR=:http", "invalid_address"},
		{"HTTP_ADDR=ho st:80", "invalid_address"},
		{"PUBLIC_URL=localhost:8080", "invalid_url"},
		{"PUBLIC_URL=http://", "invalid_url"},
		{"PUBLIC_URL=ftp://a", "invalid_url"},
		{"PUBLIC_URL=http://u:p@a", "invalid_url"},
		{"PUBLIC_URL=http://a?x=1", "invalid_url"},
		{"PUBLIC_URL=http://a#", "invalid_url"},
		{"PUBLIC_URL=http://a:b:c/%zz", "invalid_url"},
		{"MAIL_FROM=nobody", "invalid_mail_address"},
		{"ENVIRONMENT=Prod", "invalid_name"},
		{"ENVIRONMENT=-", "invalid_name"},
		{"ENVIRONMENT=" + strings.Repeat("a", 64), "invalid_name"},
		{"INBOX_CONFLICT=ignore", "not_allowed"},
		{"DATABASE_URL=db/customer", "invalid_postgres_url"},
		{"DATABASE_URL=host=db dbname=customer", "invalid_postgres_url"},
		{"DATABASE_URL=postgres://u:p@db", "invalid_postgres_url"},
		{"DATABASE_URL=postgres:///customer", "invalid_postgres_url"},
		{"DATABASE_URL=postgres://u:p@db:port/customer", "invalid_postgres_url"},
		{"DATABASE_URL=postgres://db/customer?sslmode=maybe", "invalid_postgres_url"},
		{"DATABASE_URL=postgres://db/customer?pool_max_conns=many", "invalid_postgres_url"},
		{"VERIFICATION_SECRET=short", "too_short"},
		{"VERIFICATION_SECRET=" + strings.Repeat("k", 65), "too_long"},
		{"SMTP_ADDR=" + strings.Repeat("a", 5000) + ":25", "too_long"},
		{"OUTBOX_POLL=20s", "conflict"}, // the config's own cross check
		{"INBOX_BATCH=13", "conflict"},  // one of a struct inside
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%.40q", c.setting), func(t *testing.T) {
			t.Parallel()
			variable, _, _ := strings.Cut(c.setting, "=")
			require.Equal(t, []string{variable + " " + c.want}, load(t, valid(c.setting), new(sample)))
		})
	}
}
