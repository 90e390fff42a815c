package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	var cfg sample
	require.NoError(t, config.Load(valid("OUTBOX_LEASE=1m", "TRUSTED_PROXIES=10.0.0.0/8,::1/128"), &cfg))
	by := map[string]config.Setting{}
	for _, s := range config.Describe(cfg) {
		by[s.Variable] = s
	}
	require.Equal(t, config.Describe(cfg), config.Describe(&cfg))
	require.Equal(t, config.Setting{
		Variable: "OUTBOX_LEASE", Type: "duration", Value: "1m", Default: "10s", Limits: "1s to 5m", Doc: "leader's lease",
	}, by["OUTBOX_LEASE"])
	require.Equal(t, config.Setting{
		Variable: "DATABASE_URL", Type: "secret", Value: "postgres://u:***@db:5432/customer?sslmode=disable",
		Required: true, Limits: "postgres", Doc: "where it stores",
	}, by["DATABASE_URL"])
	require.Equal(t, config.Setting{
		Variable: "VERIFICATION_SECRET", Type: "secret", Value: "***", Required: true,
		Limits: "32 to 64 bytes", Doc: "signs links",
	}, by["VERIFICATION_SECRET"])
	require.Equal(t, "a:9092,b:9092", by["KAFKA_BROKERS"].Value)
	require.Equal(t, "list", by["KAFKA_BROKERS"].Type)
	require.Equal(t, "10.0.0.0/8,::1/128", by["TRUSTED_PROXIES"].Value)
	require.Equal(t, "list", by["TRUSTED_PROXIES"].Type)
	require.Empty(t, by["ADMIN_HOSTS"].Value)
	require.Equal(t, "true", by["SMTP_TLS"].Value)
	require.Equal(t, "bool", by["SMTP_TLS"].Type)
	require.Equal(t, "integer", by["DATABASE_POOL_SIZE"].Type)
	require.Equal(t, "from 1h", by["INBOX_RETENTION"].Limits)
	require.Equal(t, "error, warn", by["INBOX_CONFLICT"].Limits)
	require.Equal(t, "text", by["INBOX_CONFLICT"].Type)
	require.Len(t, by, 21)
}
