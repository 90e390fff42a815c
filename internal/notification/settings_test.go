package notification

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/mail"
	"example.com/twinbox/internal/outbox"
)

func TestSettingsThatLoadAreSettingsThatWork(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://u@127.0.0.1:1/n")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	settings := config.Describe(Config{})
	rapid.Check(t, func(t *rapid.T) {
		var drawn []string
		for _, s := range settings {
			own := strings.HasPrefix(s.Variable, "MAIL_") || strings.HasPrefix(s.Variable, "SMTP_")
			lowest, highest, bounded := strings.Cut(s.Limits, " to ")
			if s.Type != "duration" && s.Type != "integer" || !own || !bounded {
				continue
			}
			value := s.Default // many values together break each other's rules
			if rapid.IntRange(0, 4).Draw(t, "change") == 4 {
				value = rapid.SampledFrom([]string{lowest, highest}).Draw(t, s.Variable)
			}
			drawn = append(drawn, s.Variable+"="+value)
		}
		var cfg Config
		if config.Load(environ(drawn...), &cfg) != nil {
			t.Skip("refused where it should be")
		}
		_, err := newSender(Sender{
			settings: cfg.Mail, pool: pool, outbox: &outbox.Outbox{}, log: slog.New(slog.DiscardHandler),
			registerer: prometheus.NewRegistry(), writer: cfg.writer(), smtp: &mail.Sender{Config: cfg.SMTP, From: cfg.MailFrom},
		})
		require.NoError(t, err)
	})
}
