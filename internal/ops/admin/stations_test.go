package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/service"
)

func measured(t *testing.T, set func(gauge func(name string, value float64, labels ...string))) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewRegistry()
	set(func(name string, value float64, labels ...string) {
		of := prometheus.Labels{}
		for i := 0; i < len(labels); i += 2 {
			of[labels[i]] = labels[i+1]
		}
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, ConstLabels: of})
		gauge.Set(value)
		require.NoError(t, registry.Register(gauge))
	})
	return registry
}

func stationsOf(
	t *testing.T, metrics prometheus.Gatherer, ready service.Readiness,
) (adminapi.Stations, map[string]string) {
	t.Helper()
	b := withoutDatabase(t, func(cfg *admin.Config, _ *http.Server) {
		cfg.Metrics, cfg.Token = metrics, ""
		cfg.Consumers = []admin.Consumer{{Name: "profile", Topic: "users"}}
		cfg.Readiness = func() service.Readiness { return ready }
	})
	status, body := b.callAs(t, "", http.MethodGet, adminapi.StationsPath, "")
	require.Equal(t, http.StatusOK, status, string(body))
	var found adminapi.Stations
	require.NoError(t, json.Unmarshal(body, &found))
	lines := map[string]string{}
	for _, s := range found.Stations {
		figures := [5]any{"?", "?", "?", "?", "?"}
		for i, figure := range []*float64{s.Passed, s.Refused, s.Waiting, s.ForOperator, s.AgeSeconds} {
			if figure != nil {
				figures[i] = *figure
			}
		}
		lines[s.Kind+"/"+s.Name] = fmt.Sprint(figures, " ", s.State, " ", s.Note)
	}
	return found, lines
}

type gathererFunc func() ([]*dto.MetricFamily, error)

func (f gathererFunc) Gather() ([]*dto.MetricFamily, error) { return f() }

func TestMetricsAndReadinessAreReadConcurrently(t *testing.T) {
	t.Parallel()
	both := make(chan struct{})
	b := withoutDatabase(t, func(cfg *admin.Config, _ *http.Server) {
		cfg.Metrics = gathererFunc(func() ([]*dto.MetricFamily, error) {
			both <- struct{}{}
			return nil, nil
		})
		cfg.Readiness = func() service.Readiness {
			select {
			case <-both:
				return service.Readiness{Status: service.StatusReady}
			case <-t.Context().Done():
				return service.Readiness{}
			}
		}
	})
	status, body := b.call(t, http.MethodGet, adminapi.StationsPath, "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, string(body), service.StatusReady)
}

func aSystem(gauge func(name string, value float64, labels ...string)) {
	gauge("http_server_requests_in_flight", 2)
	gauge("http_server_requests_total", 10, "status", "2xx")
	gauge("http_server_requests_total", 3, "status", "4xx")
	gauge("lease_stale_rejects_total", 0, "handler", "mails")
	gauge("lease_attempts_total", 4, "handler", "mails", "result", "done")
	gauge("lease_rows", 5, "handler", "mails", "state", "pending")
	gauge("lease_rows", 1, "handler", "mails", "state", "claimed")
	gauge("lease_rows", 1, "handler", "mails", "state", "uncertain")
	gauge("lease_rows", 1, "handler", "mails", "state", "failed")
	gauge("lease_oldest_seconds", 7, "handler", "mails", "state", "pending")
	gauge("outbox_relay_lag_events", 6)
	gauge("outbox_relay_oldest_unpublished_seconds", 1.5)
	gauge("outbox_relay_published_total", 8, "topic", "users")
	gauge("outbox_relay_held_events", 0)
	gauge("outbox_relay_parked_keys", 0)
	gauge("outbox_topic_info", 1, "topic", "users")
	gauge("outbox_topic_info", 1, "topic", "dlq.users")
	gauge("inbox_messages_total", 9, "consumer", "profile", "outcome", "applied")
	gauge("kafka_consumer_lag_records", 1, "consumer", "profile", "partition", "0")
	gauge("kafka_consumer_lag_records", 2, "consumer", "profile", "partition", "1")
	gauge("kafka_consumer_lag_seconds", 3, "consumer", "profile", "partition", "0")
	gauge("kafka_consumer_lag_seconds", 4, "consumer", "profile", "partition", "1")
	gauge("dead_letters_waiting", 13, "consumer", "profile")
}

func TestTheStationsOfAService(t *testing.T) {
	t.Parallel()
	found, lines := stationsOf(t, measured(t, aSystem), service.Readiness{Status: service.StatusReady})
	require.Equal(t, map[string]string{
		"http/test":     "[13 3 2 ? ?] well ",
		"mail/mails":    "[4 ? 6 2 7] well ",
		"outbox/test":   "[? ? 6 ? 1.5] well ",
		"relay/test":    "[8 ? 0 0 ?] well ",
		"topic/users":   "[8 ? ? ? ?] well ",
		"inbox/profile": "[9 ? 3 13 4] well ",
	}, lines)
	require.Equal(t, []service.Cause{}, found.Causes, "all is well")
	require.Equal(t, "ready", found.Status)

	_, lines = stationsOf(t, measured(t, aSystem), service.Readiness{Causes: []service.Cause{
		{Code: "attempt_failing", Station: "inbox/profile", Stops: true},
		{Code: "dead_letters", Station: "inbox/profile"},
		{Code: "keys_parked", Station: "relay"},
		{Code: "mail_server_down", Station: "mail/mails", Stops: true},
	}})
	require.Contains(t, lines["inbox/profile"], "stopped attempt failing")
	require.Contains(t, lines["relay/test"], "watch keys parked")
	require.Contains(t, lines["mail/mails"], "stopped mail server down")
	require.Contains(t, lines["outbox/test"], "well")

	_, lines = stationsOf(t, measured(t, aSystem), service.Readiness{Causes: []service.Cause{
		{Code: "dependency_down", Station: "broker", Stops: true},
	}})
	for name, want := range map[string]string{
		"http/test": "well", "outbox/test": "well", "relay/test": "stopped", "topic/users": "stopped",
		"inbox/profile": "stopped",
	} {
		require.Contains(t, lines[name], want, name)
	}
}

func TestAStationWithoutAnAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	_, lines := stationsOf(t, prometheus.NewRegistry(), service.Readiness{Status: service.StatusReady})
	require.Equal(t, map[string]string{
		"outbox/test": "[? ? ? ? ?] unknown ", "relay/test": "[0 ? ? ? ?] unknown ",
		"inbox/profile": "[0 ? ? ? ?] unknown ",
	}, lines)
}

func TestAFailingCheckIsACause(t *testing.T) {
	t.Parallel()
	failing := func(name string) service.CheckResult {
		return service.CheckResult{Name: name, Status: service.StatusFailing, Reason: "no right"}
	}
	codes := func(ready service.Readiness) (codes []string) {
		found, _ := stationsOf(t, measured(t, aSystem), ready)
		for _, c := range found.Causes {
			codes = append(codes, c.Code+" "+c.Details)
		}
		return codes
	}
	tables := []service.CheckResult{failing("tables"), {Name: "relay", Status: service.StatusWaiting}}
	require.Equal(t, []string{"not_ready no right"}, codes(service.Readiness{Checks: tables}))
	paused := service.Cause{Code: "relay_paused", Station: "relay", Stops: true}
	require.Equal(t, []string{"relay_paused ", "not_ready no right"},
		codes(service.Readiness{Checks: tables, Causes: []service.Cause{paused}}), "a pause does not explain it")
	require.Equal(t, []string{"relay_paused "}, codes(service.Readiness{
		Checks: []service.CheckResult{failing("relay"), failing("held events")}, Causes: []service.Cause{paused},
	}))
	down := service.Cause{Code: "mail_server_down", Station: "mail/mails", Stops: true}
	require.Equal(t, []string{"mail_server_down "}, codes(service.Readiness{
		Checks: []service.CheckResult{failing("mail server")}, Causes: []service.Cause{down},
	}))
}

func TestAnInstanceThatShutsDownIsNotWell(t *testing.T) {
	t.Parallel()
	found, lines := stationsOf(t, measured(t, aSystem), service.Readiness{Status: service.StatusDraining})
	require.Len(t, found.Causes, 1)
	require.Equal(t, "draining", found.Causes[0].Code)
	require.Contains(t, lines["http/test"], "watch draining")
	require.Contains(t, lines["outbox/test"], "well")
}
