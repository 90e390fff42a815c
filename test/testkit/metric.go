package testkit

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

// Gauge returns the value of a gauge, and its labels as pairs sorted by name.
func Gauge(t testing.TB, m prometheus.Metric) (value float64, labels [][2]string) {
	t.Helper()
	var out dto.Metric
	require.NoError(t, m.Write(&out))
	for _, label := range out.GetLabel() {
		labels = append(labels, [2]string{label.GetName(), label.GetValue()})
	}
	return out.GetGauge().GetValue(), labels
}
