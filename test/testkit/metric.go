package testkit

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

// Gauge is the value of a gauge and its labels: their names and values, in the order of the names.
func Gauge(t testing.TB, m prometheus.Metric) (value float64, labels [][2]string) {
	t.Helper()
	var out dto.Metric
	require.NoError(t, m.Write(&out))
	for _, label := range out.GetLabel() {
		labels = append(labels, [2]string{label.GetName(), label.GetValue()})
	}
	return out.GetGauge().GetValue(), labels
}

// HasLabel says whether any label of the metric has the value.
func HasLabel(m *dto.Metric, value string) bool {
	for _, pair := range m.GetLabel() {
		if pair.GetValue() == value {
			return true
		}
	}
	return false
}
