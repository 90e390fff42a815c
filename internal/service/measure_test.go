package service_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
)

var depth = prometheus.NewDesc("depth", "For the test.", nil, nil)

type source struct {
	asked   atomic.Int32
	measure func(ctx context.Context) (float64, error)
}

func (s *source) Measure(ctx context.Context) ([]prometheus.Metric, error) {
	s.asked.Add(1)
	value, err := s.measure(ctx)
	if err != nil {
		return nil, err
	}
	return []prometheus.Metric{prometheus.MustNewConstMetric(depth, prometheus.GaugeValue, value)}, nil
}

func scrape(t *testing.T, admin http.Handler) string {
	t.Helper()
	answer := get(t, admin, "/metrics")
	require.Equal(t, http.StatusOK, answer.Code)
	return answer.Body.String()
}

const (
	upLine   = `metrics_source_up{source="s"} 1`
	downLine = `metrics_source_up{source="s"} 0`
)

func measuring(t *testing.T, measure func(context.Context) (float64, error)) (*service.Admin, *source) {
	t.Helper()
	s := &source{measure: measure}
	admin := service.NewAdmin(service.AdminConfig{Log: slog.New(slog.DiscardHandler)})
	admin.Measure("s", s.Measure)
	return admin, s
}

func TestASourceThatFailsLeavesItsGaugesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		value, failing := 7.0, error(nil)
		admin, s := measuring(t, func(context.Context) (float64, error) { return value, failing })
		require.Contains(t, scrape(t, admin), "\ndepth 7\n")

		value = 8
		require.Contains(t, scrape(t, admin), "\ndepth 7\n", "a second reader a moment later costs nothing")
		require.EqualValues(t, 1, s.asked.Load())

		<-time.After(time.Second)
		text := scrape(t, admin)
		require.Contains(t, text, "\ndepth 8\n")
		require.Contains(t, text, upLine)

		failing = errors.New("away")
		<-time.After(time.Second)
		text = scrape(t, admin)
		require.NotContains(t, text, "\ndepth ")
		require.Contains(t, text, downLine)
	})
}

func TestASourceThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		admin, s := measuring(t, func(context.Context) (float64, error) { <-release; return 3, nil })
		for range 3 {
			began := time.Now()
			require.Contains(t, scrape(t, admin), downLine)
			require.Equal(t, 2*time.Second, time.Since(began))
		}
		require.EqualValues(t, 1, s.asked.Load())
		close(release)
		synctest.Wait()
		require.Contains(t, scrape(t, admin), "\ndepth 3\n")
	})
}
