package local

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
)

func valuesOf(instance *eventing.Instance) map[string]string {
	values := map[string]string{}
	for _, s := range instance.Variables {
		values[s.Variable] = s.Value
	}
	return values
}

func TestWhatTheServicesAreGiven(t *testing.T) {
	t.Parallel()
	at := Addresses{
		Services:     map[string]Listen{"customer": {API: "0.0.0.0:8080"}},
		KafkaBrokers: "k:9092", SMTP: "127.0.0.1:1025", AdminToken: placeholderSecret,
		Databases: map[string]string{},
	}
	for _, name := range services.Names() {
		at.Databases[name] = "postgres://db/" + name + "?application_name=y"
	}
	cfg := Config{Settings: []string{"OUTBOX_LEASE=9s", "MAIL_LEASE=93s", "OUTBOX_LEASE=11s"}}.withDefaults()
	settings, err := readSettings(cfg)
	require.NoError(t, err)
	s, err := (&stack{cfg: cfg, settings: settings, secret: placeholderSecret, at: at}).configure()
	require.NoError(t, err)
	customer, notification := valuesOf(s["customer"]), valuesOf(s["notification"])
	require.Equal(t, []string{"11s", "11s"}, []string{customer["OUTBOX_LEASE"], notification["OUTBOX_LEASE"]},
		"the last one counts")
	require.Equal(t, tuning["SHUTDOWN_TIMEOUT"], customer["SHUTDOWN_TIMEOUT"])
	require.Equal(t, "1m33s", notification["MAIL_LEASE"])
	require.NotContains(t, customer, "MAIL_LEASE")
	require.Equal(t, "postgres://db/customer?application_name=y", customer["DATABASE_URL"])
	require.Equal(t, "postgres://db/notification?application_name=y", notification["DATABASE_URL"])
	require.Equal(t, "http://127.0.0.1:8080", notification["PUBLIC_URL"], "links that can be followed")
	for _, name := range services.Names() {
		values := valuesOf(s[name])
		require.Equal(t, "k:9092", values["KAFKA_BROKERS"])
		require.Equal(t, "127.0.0.1:0", values["ADMIN_ADDR"])
		require.NotEmpty(t, values["ADMIN_TOKEN"], "it can be operated")
		require.NotContains(t, values["ADMIN_TOKEN"], placeholderSecret)
	}
}
