package eventing_test

import (
	"crypto/tls"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/web"
	"example.com/twinbox/test/testkit"
)

var least = []string{"DATABASE_URL=postgres://u:hunter2@127.0.0.1:1/d", "KAFKA_BROKERS=127.0.0.1:1,127.0.0.1:2"}

func TestEachCrossCheckNamesItsVariable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(testkit.NewTLSServer(t).File(t))
	require.NoError(t, err)
	authority := strings.TrimSpace(string(text))
	for name, row := range map[string]struct {
		set  []string
		want []string
	}{
		"publishing outlasts the lease":                {[]string{"OUTBOX_LEASE=9s"}, []string{"OUTBOX_LEASE"}},
		"polling for longer than a third of the lease": {[]string{"OUTBOX_LEASE=12s", "OUTBOX_POLL=1m"}, nil},
		"forgotten before it is gone":                  {[]string{"INBOX_RETENTION=216h"}, []string{"INBOX_RETENTION"}},
		"retries the wrong way round": {
			[]string{"INBOX_RETRY_MIN=2s", "INBOX_RETRY_MAX=1s"}, []string{"INBOX_RETRY_MAX"},
		},
		"a user without password": {[]string{"KAFKA_USERNAME=u"}, []string{"KAFKA_PASSWORD"}},
		"a password in the clear": {
			[]string{"KAFKA_USERNAME=u", "KAFKA_PASSWORD=hunter2"}, []string{"KAFKA_TLS"},
		},
		"a login that sends no password": {
			[]string{"KAFKA_USERNAME=u", "KAFKA_PASSWORD=hunter2", "KAFKA_SASL_MECHANISM=scram-sha-512"}, nil,
		},
		"an authority and no encryption": {[]string{"KAFKA_CA=" + authority}, []string{"KAFKA_TLS"}},
		"a certificate without its key": {
			[]string{"KAFKA_TLS=true", "KAFKA_CERTIFICATE=" + authority}, []string{"KAFKA_KEY", "KAFKA_CERTIFICATE"},
		},
		"an authority":                {[]string{"KAFKA_TLS=true", "KAFKA_CA=" + authority}, nil},
		"a name that no broker takes": {[]string{"KAFKA_INSTANCE_ID=a b"}, []string{"KAFKA_INSTANCE_ID"}},
		"a name of dots":              {[]string{"KAFKA_INSTANCE_ID=.."}, []string{"KAFKA_INSTANCE_ID"}},
		"a pod's name":                {[]string{"KAFKA_INSTANCE_ID=customer-0.customer"}, nil},
		"all right": {
			[]string{"KAFKA_USERNAME=u", "KAFKA_PASSWORD=hunter2", "KAFKA_TLS=true"}, nil,
		},
		"an owner of another database": {[]string{"MIGRATE_DATABASE_URL=postgres://o@h/e"}, []string{"MIGRATE_DATABASE_URL"}},
		"an owner on another host":     {[]string{"MIGRATE_DATABASE_URL=postgres://o@h/d"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, append(row.set, least...)...)
			all := &config.Error{}
			require.True(t, err == nil || errors.As(err, &all))
			var variables []string
			for _, p := range all.Problems {
				require.NotContains(t, p.Detail, "hunter2")
				variables = append(variables, p.Variable)
			}
			require.Equal(t, row.want, variables)
		})
	}
}

func TestTheSlowestRequestGetsItsAnswer(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{100 * time.Millisecond, 10 * time.Second, 5 * time.Minute} {
		cfg := eventing.Config{DrainFor: max(time.Second, timeout)}
		for _, rule := range cfg.APIRules(timeout) {
			require.True(t, rule.Holds || rule.Variable != "SHUTDOWN_TIMEOUT", "REQUEST_TIMEOUT=%s", timeout)
		}
		bounds := cfg.Server(timeout, nil, nil)
		require.Greater(t, bounds.WriteTimeout, web.DefaultReadTimeout, "a body under REQUEST_TIMEOUT=%s", timeout)
		require.Greater(t, bounds.WriteTimeout, timeout, "a transaction under REQUEST_TIMEOUT=%s", timeout)
		require.GreaterOrEqual(t, bounds.DrainTimeout, timeout, "a stop under REQUEST_TIMEOUT=%s", timeout)
		require.LessOrEqual(t, bounds.DrainTimeout, cfg.DrainFor, "the group stops under REQUEST_TIMEOUT=%s", timeout)
	}
}

func TestClientAndTopicsFollowTheVariables(t *testing.T) {
	t.Parallel()
	cfg, err := load(t, append([]string{
		"KAFKA_TLS=true", "KAFKA_USERNAME=u", "KAFKA_PASSWORD=hunter2", "KAFKA_PUBLISH_TIMEOUT=3s",
		"KAFKA_TOPIC_PARTITIONS=12", "KAFKA_TOPIC_REPLICATION_FACTOR=3", "KAFKA_TOPIC_RETENTION=24h",
	}, least...)...)
	require.NoError(t, err)
	require.Equal(t, kafka.Config{
		Brokers: []string{"127.0.0.1:1", "127.0.0.1:2"}, ClientID: "test", PublishTimeout: 3 * time.Second,
		User: "u", Password: "hunter2", Mechanism: "plain", TLS: &tls.Config{MinVersion: tls.VersionTLS12},
	}, cfg.Client("test"))
	require.Equal(t, []kafka.Topic{
		{Name: "a", Partitions: 12, ReplicationFactor: 3, Retention: 24 * time.Hour},
		{Name: "b", Partitions: 12, ReplicationFactor: 3, Retention: 24 * time.Hour},
	}, cfg.Topics("a", "b"))
	require.Nil(t, eventing.Config{}.Client("test").TLS)
}
