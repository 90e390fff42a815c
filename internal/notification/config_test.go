package notification

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/domain"
)

func environ(extra ...string) []string {
	return append([]string{
		"DATABASE_URL=postgres://u:hunter2@127.0.0.1:1/n", "KAFKA_BROKERS=127.0.0.1:1", "SMTP_ADDR=127.0.0.1:1",
		"VERIFICATION_SECRET=0123456789abcdef0123456789abcdef",
	}, extra...)
}

func TestTheDefaultsHoldTogether(t *testing.T) {
	t.Parallel()
	var cfg Config
	require.NoError(t, config.Load(environ(), &cfg))
	require.Equal(t, "example.com", cfg.writer().Host)
	require.Equal(t, int32(6), cfg.Topics()[0].Partitions)
}

func TestLinksBeginAtThePublicURL(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"https://example.org":       "https://example.org/v1/verifications?token=",
		"https://example.org/":      "https://example.org/v1/verifications?token=",
		"https://example.org/shop/": "https://example.org/shop/v1/verifications?token=",
	} {
		var cfg Config
		require.NoError(t, config.Load(environ("PUBLIC_URL="+given), &cfg))
		letter, err := cfg.writer().Write(Mail{ID: uuid.New(), UserID: domain.UserID(uuid.NewString())}, time.Now())
		require.NoError(t, err)
		require.Contains(t, letter.Text, "\n"+want, given)
	}
}

func TestMessageIDsAreOfTheSendersDomain(t *testing.T) {
	t.Parallel()
	for _, from := range []string{
		"no-reply@example.org", "Twinbox <no-reply@example.org>", "<no-reply@example.org>",
		`"Twinbox @ home" <no-reply@example.org>`, `"no@reply"@example.org`, "no-reply@example.org (Twinbox)",
	} {
		var cfg Config
		require.NoError(t, config.Load(environ("MAIL_FROM="+from), &cfg))
		require.Equal(t, "example.org", cfg.writer().Host, from)
	}
}

func TestCrossChecksAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	var cfg Config
	err := config.Load(environ(
		"MAIL_LEASE=10s", "SMTP_TIMEOUT=20s", "MAIL_RETRY_MIN=10s", "MAIL_RETRY_MAX=1s", "SHUTDOWN_TIMEOUT=5s",
		"SMTP_USERNAME=u", "SMTP_PASSWORD=hunter2", "OUTBOX_LEASE=5s",
		"INBOX_RETRY_MIN=10s", "INBOX_RETRY_MAX=1s", "KAFKA_PASSWORD=hunter2",
	), &cfg)
	var all *config.Error
	require.True(t, errors.As(err, &all))
	var variables []string
	for _, p := range all.Problems {
		variables = append(variables, p.Variable)
	}
	require.ElementsMatch(t, []string{
		"MAIL_LEASE", "MAIL_RETRY_MAX", "SHUTDOWN_TIMEOUT", "SMTP_TLS", "OUTBOX_LEASE",
		"INBOX_RETRY_MAX", "KAFKA_PASSWORD", "KAFKA_TLS",
	}, variables)
	require.NotContains(t, err.Error(), "hunter2")
}
