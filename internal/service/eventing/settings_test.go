package eventing_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
)

func TestSettingsThatLoadAreSettingsThatWork(t *testing.T) {
	t.Parallel()
	settings := config.Describe(eventing.Config{})
	rapid.Check(t, func(t *rapid.T) {
		environ := []string{"DATABASE_URL=postgres://u:p@127.0.0.1:1/d", "KAFKA_BROKERS=127.0.0.1:1"}
		for _, s := range settings {
			lowest, highest, bounded := strings.Cut(s.Limits, " to ")
			if s.Type != "duration" && s.Type != "integer" || !bounded {
				continue
			}
			value := s.Default // many values together break each other's rules
			if rapid.IntRange(0, 4).Draw(t, "change") == 4 {
				value = rapid.SampledFrom([]string{lowest, highest}).Draw(t, s.Variable)
			}
			environ = append(environ, s.Variable+"="+value)
		}
		var cfg struct{ eventing.Config }
		if config.Load(environ, &cfg) != nil {
			t.Skip("refused where it should be")
		}
		log := slog.New(slog.DiscardHandler)
		node, err := eventing.Open(context.Background(), eventing.Setup{
			Service: "test", Config: cfg.Config, Topics: cfg.Topics("t"), Log: log,
			Admin: service.NewAdmin(service.AdminConfig{Log: log}), Validate: func(event.Event) error { return nil },
		})
		require.NoError(t, err)
		defer node.Close()
		c := eventing.Consumer{Name: "c", Topic: "t", Handlers: inbox.NewMux(), Order: inbox.Strict}
		require.NoError(t, node.Consume(c))
	})
}
