package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
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
		{"KAFKA_BROKERS=,a:9092", "empty_entry"},
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
		{"KAFKA_BROKERS=a:9092,A:9092", "duplicate_entry"},
		{"KAFKA_BROKERS=256.1.1.1:80", "invalid_address"},
		{"KAFKA_BROKERS=10.0.1:80", "invalid_address"},
		{"KAFKA_BROKERS=2130706433:80", "invalid_address"},
		{"KAFKA_BROKERS=0x7f000001:80", "invalid_address"},
		{"KAFKA_BROKERS=a.0x7f:80", "invalid_address"},
		{"KAFKA_BROKERS=010.0.0.1:80", "invalid_address"},
		{"KAFKA_BROKERS=1.2.3.4.:80", "invalid_address"},
		{"KAFKA_BROKERS=-a:80", "invalid_address"},
		{"KAFKA_BROKERS=a..b:80", "invalid_address"},
		{"KAFKA_BROKERS=" + strings.Repeat("a", 64) + ":80", "invalid_address"},
		{"KAFKA_BROKERS=exämple.org:80", "invalid_address"},
		{"KAFKA_BROKERS=u@a:80", "invalid_address"},
		{"KAFKA_BROKERS=a/b:80", "invalid_address"},
		{"KAFKA_BROKERS=[a]:80", "invalid_address"},
		{"KAFKA_BROKERS=[127.0.0.1]:80", "invalid_address"},
		{"KAFKA_BROKERS=[::1:80", "invalid_address"},
		{"KAFKA_BROKERS=[::g]:80", "invalid_address"},
		{"KAFKA_BROKERS=a:+80", "invalid_address"},
		{"KAFKA_BROKERS=a\u200b:80", "not_text"},
		{"SMTP_ADDR=256.1.1.1:80", "invalid_address"},
		{"HTTP_ADDR=256.1.1.1:80", "invalid_address"},
		{"HTTP_ADDR=::1:80", "invalid_address"},
		{"HTTP_ADDR=127.0.0.1", "invalid_address"},
		{"HTTP_ADDR=127.0.0.1:65536", "invalid_address"},
		{"HTTP_ADDR=http://127.0.0.1:80", "invalid_address"},
		{"PUBLIC_URL=http://h:99999", "invalid_url"},
		{"PUBLIC_URL=http://h:0", "invalid_url"},
		{"PUBLIC_URL=http://h:", "invalid_url"},
		{"PUBLIC_URL=http://h:080", "invalid_url"},
		{"PUBLIC_URL=http://:80", "invalid_url"},
		{"PUBLIC_URL=http:///path", "invalid_url"},
		{"PUBLIC_URL=http:h", "invalid_url"},
		{"PUBLIC_URL=//h", "invalid_url"},
		{"PUBLIC_URL=http//h", "invalid_url"},
		{"PUBLIC_URL=http://256.1.1.1", "invalid_url"},
		{"PUBLIC_URL=http://0x7f.1", "invalid_url"},
		{"PUBLIC_URL=http://::1", "invalid_url"},
		{"PUBLIC_URL=http://[fe80::1%25eth0]", "invalid_url"},
		{"PUBLIC_URL=http://exämple.org", "invalid_url"},
		{"PUBLIC_URL=http://a b.org", "invalid_url"},
		{"PUBLIC_URL=http://example.org/a b", "invalid_url"},
		{"PUBLIC_URL=http://example.org/ä", "invalid_url"},
		{"PUBLIC_URL=http://example.org/a/../b", "invalid_url"},
		{"PUBLIC_URL=http://example.org//b", "invalid_url"},
		{"PUBLIC_URL=http://example.org\\@evil.example", "invalid_url"},
		{"PUBLIC_URL=http://example.org/\\evil", "invalid_url"},
		{"PUBLIC_URL=http://example.org/<b>", "invalid_url"},
		{"PUBLIC_URL=http://user@example.org", "invalid_url"},
		{"PUBLIC_URL=http://@example.org", "invalid_url"},
		{"PUBLIC_URL=http://moc.elpmaxe\u202e.example", "not_text"},
		{"PUBLIC_URL=http://example.org/\u2028a", "not_text"},
		{"PUBLIC_URL=http://exa\u00admple.org", "not_text"},
		{"PUBLIC_URL=http://exa\ue000mple.org", "not_text"},
		{"PUBLIC_URL=http://exa\tmple.org", "not_text"},
		{"TRUSTED_PROXIES=10.0.0.1", "invalid_network"},
		{"TRUSTED_PROXIES=10.0.0.0/33", "invalid_network"},
		{"TRUSTED_PROXIES=10.0.0.1/8", "invalid_network"},
		{"TRUSTED_PROXIES=0.0.0.0/0", "invalid_network"},
		{"TRUSTED_PROXIES=10.0.0.0/8,::/0", "invalid_network"},
		{"TRUSTED_PROXIES=10.0.0.0/8,10.0.0.0/8", "duplicate_entry"},
		{"TRUSTED_PROXIES=proxy/8", "invalid_network"},
		{"ADMIN_HOSTS=a:80", "invalid_host"},
		{"ADMIN_HOSTS=http://a", "invalid_host"},
		{"ADMIN_HOSTS=*", "invalid_host"},
		{"ADMIN_HOSTS=*.example.org", "invalid_host"},
		{"ADMIN_HOSTS=256.1.1.1", "invalid_host"},
		{"ADMIN_HOSTS=a,,b", "empty_entry"},
		{"ADMIN_TOKEN=" + strings.Repeat("k", 31) + " x", "invalid_token"},
		{"ADMIN_TOKEN=" + strings.Repeat("ü", 32), "invalid_token"},
		{"MAIL_FROM=postmaster", "invalid_mail_address"},
		{"MAIL_FROM=a@256.1.1.1", "invalid_mail_address"},
		{"MAIL_FROM=a@[127.0.0.1]", "invalid_mail_address"},
		{"MAIL_FROM=a@exämple.org", "invalid_mail_address"},
		{"MAIL_FROM=" + strings.Repeat("a", 65) + "@example.org", "invalid_mail_address"},
		{"MAIL_FROM=\u202eknaB <a@example.org>", "not_text"},
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
		{"DATABASE_URL=postgres://u:p@256.1.1.1/customer", "invalid_postgres_url"},
		{"DATABASE_URL=postgres://u:p@db:99999/customer", "invalid_postgres_url"},
		{"DATABASE_URL=postgres://u:p@db:0/customer", "invalid_postgres_url"},
		{"DATABASE_URL=postgres://u:p@a,256.1.1.1/customer", "invalid_postgres_url"},
		{"DATABASE_URL=postgres://u:p@dä/customer", "invalid_postgres_url"},
		{"DATABASE_URL=postgres://u:p@db/customer?host=256.1.1.1", "invalid_postgres_url"},
		{"DATABASE_URL=postgres://u:p@db/customer#x", "invalid_postgres_url"},
		{"DATABASE_URL=postgres://u:p@d\u202eb/customer", "not_text"},
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

// All bad entries of a list are named, each with its own mistake, and none is repeated.
func TestLoad_AllBadEntriesOfAList(t *testing.T) {
	t.Parallel()
	var invalid *config.Error
	require.ErrorAs(t, config.Load(valid(
		"KAFKA_BROKERS=a:1,,hunter2,b:1 ,256.1.1.1:80,A:1,c\u200b:1,d:1,\"e:1\"",
		"DATABASE_URL=postgres://u:hunter2@256.1.1.1,b,b..c/customer",
	), new(sample)), &invalid)
	require.Equal(t, []config.Problem{
		{"DATABASE_URL", "invalid_postgres_url", "host 1 of 3: the host looks like an IP address and is none; " +
			"host 3 of 3: the host is neither a name nor an IP address"},
		{"KAFKA_BROKERS", "empty_entry", "entry 2 of 9: empty"},
		{"KAFKA_BROKERS", "invalid_address", "entry 3 of 9: not host:port (an IPv6 address goes in brackets)"},
		{"KAFKA_BROKERS", "surrounding_space", "entry 4 of 9: contains blanks; separate entries by commas alone"},
		{"KAFKA_BROKERS", "invalid_address", "entry 5 of 9: the host looks like an IP address and is none"},
		{"KAFKA_BROKERS", "duplicate_entry", "entry 6 of 9: repeats an earlier one"},
		{"KAFKA_BROKERS", "not_text", "entry 7 of 9: control, format or unassigned characters inside the value; " +
			"some of them do not show"},
		{"KAFKA_BROKERS", "quoted", "entry 9 of 9: quotes around the value; they would become part of it"},
	}, invalid.Problems)
}
