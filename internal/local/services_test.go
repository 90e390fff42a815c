package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
)

// valuesOf are the settings that are in effect, by variable.
func valuesOf(cfg any) map[string]string {
	values := map[string]string{}
	for _, s := range config.Describe(cfg) {
		values[s.Variable] = s.Value
	}
	return values
}

// A setting wins over what this program prefers, reaches the services that read it and no other; both
// services are given the same broker, token and secret, and each its own database.
func TestWhatTheServicesAreGiven(t *testing.T) {
	t.Parallel()
	at := Addresses{
		CustomerAPI: "0.0.0.0:8080", KafkaBrokers: "k:9092", SMTP: "127.0.0.1:1025", AdminToken: placeholderSecret,
		CustomerDB: "postgres://db/customer", NotificationDB: "postgres://db/notification?application_name=y",
	}
	cfg := Config{Settings: []string{"OUTBOX_LEASE=9s", "MAIL_LEASE=93s", "OUTBOX_LEASE=11s"}}.withDefaults()
	s, err := configure(cfg, at, placeholderSecret)
	require.NoError(t, err)
	customer, notification := valuesOf(&s.customer), valuesOf(&s.notification)
	require.Equal(t, []string{"11s", "11s"}, []string{customer["OUTBOX_LEASE"], notification["OUTBOX_LEASE"]},
		"the last one counts")
	require.Equal(t, tuning["SHUTDOWN_TIMEOUT"], customer["SHUTDOWN_TIMEOUT"])
	require.Equal(t, "1m33s", notification["MAIL_LEASE"])
	require.NotContains(t, customer, "MAIL_LEASE")
	require.Equal(t, "postgres://db/customer", customer["DATABASE_URL"])
	require.Equal(t, "postgres://db/notification?application_name=y", notification["DATABASE_URL"])
	require.Equal(t, "http://127.0.0.1:8080", notification["PUBLIC_URL"], "links that can be followed")
	for _, values := range []map[string]string{customer, notification} {
		require.Equal(t, "k:9092", values["KAFKA_BROKERS"])
		require.Equal(t, "127.0.0.1:0", values["ADMIN_ADDR"])
	}
	require.Equal(t, at.AdminToken, s.customer.AdminToken)
	require.Equal(t, at.AdminToken, s.notification.AdminToken)
}

// How to operate a house is the folder's owner's alone, and what is half written or not there is not taken for it.
func TestOperatorsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := ReadOperators(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	h := &house{folder: &folder{path: dir}, at: Addresses{
		CustomerAdmin: "[::]:8081", NotificationAdmin: "10.0.0.5:8082", AdminToken: "t",
	}}
	require.NoError(t, h.writeOperators())
	o, err := ReadOperators(dir)
	require.NoError(t, err)
	require.Equal(t, Operators{
		Services: map[string]string{"customer": "127.0.0.1:8081", "notification": "10.0.0.5:8082"}, Token: "t",
	}, o)
	info, err := os.Stat(filepath.Join(dir, OperatorsFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, h.removeOperators())
	require.NoError(t, h.removeOperators(), "somebody else removed it")
	require.NoError(t, os.WriteFile(filepath.Join(dir, OperatorsFile), []byte(`{"token":"t"`), 0o600))
	_, err = ReadOperators(dir)
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrNotExist, "something runs here, or did")
}
