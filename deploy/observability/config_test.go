package observability

import (
	"log/slog"
	"testing"

	"github.com/prometheus/prometheus/config"
	_ "github.com/prometheus/prometheus/discovery/dns" // the file finds the services by it
	"github.com/stretchr/testify/require"
)

func TestPrometheusReadsItsSettings(t *testing.T) {
	t.Parallel()
	read, err := config.LoadFile("prometheus/prometheus.yml", false, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NotEmpty(t, read.ScrapeConfigs)
	require.Equal(t, []string{"/etc/prometheus/rules/*.yml"}, read.RuleFiles)
}
