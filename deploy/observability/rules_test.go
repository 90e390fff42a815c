package observability

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/require"
)

// No recording has these 90 minutes. A series is written as for promtool, with a sample every 15 s:
// value, + step, x repetitions, and _ for no sample.
func TestAlertsOfAPastThatIsLong(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]struct {
		series string
		alert  string
		fires  bool
	}{
		"an instance has been silent for long": {`
			up{job="customer", instance="a"} 1x20 0x500
			metrics_source_up{job="customer", instance="a"} 1x20 stale`, "ServiceDown", true},
		"the discovery dropped every instance": {`
			up{job="customer", instance="a"} 1x20 stale
			metrics_source_up{job="customer", instance="a"} 1x20 stale`, "ServiceDown", true},
		"a target is not ours": {`
			up{job="grafana", instance="a"} 0x500
			up{job="customer", instance="a"} 1x500
			metrics_source_up{job="customer", instance="a"} 1x500`, "ServiceDown", false},
		"the mail server is down, and no relay leads": {`
			dependency_up{job="notification", dependency="mail server"} 0x500
			outbox_relay_has_leader{job="notification"} 0x500`, "NoRelayLeads", true},
		"the mail server is down, and a table is locked": {`
			dependency_up{job="notification", dependency="mail server"} 0x500
			metrics_source_up{job="notification", source="mails"} 0x500`, "MetricsMissing", true},
		"only the first instance has rewound before": {`
			up{job="customer", instance="a"} 1x500
			up{job="customer", instance="b"} 1x500
			inbox_rewinds_total{job="customer", consumer="c", cause="broker", instance="a"} 1x500
			inbox_rewinds_total{job="customer", consumer="c", cause="broker", instance="b"} _x350 1x500`, "InboxRewound", true},
		"the only instance rewound long ago": {`
			up{job="customer", instance="a"} 1x500
			inbox_rewinds_total{job="customer", consumer="c", cause="broker", instance="a"} 1x500`, "InboxRewound", false},
		"Prometheus was away": {
			`
			up{job="customer", instance="a"} 1x220 _x100 1x500
			process_start_time_seconds{job="customer", instance="a"} 0x220 _x100 0x500
			inbox_rewinds_total{job="customer", consumer="c", cause="broker", instance="a"} 1x220 _x100 1x500`,
			"InboxRewound", false,
		},
		"a new instance skips an event": {
			`
			up{job="customer", instance="a"} _x350 1x500
			process_start_time_seconds{job="customer", instance="a"} _x350 5250x500
			inbox_messages_total{job="customer", consumer="c", outcome="stale", instance="a"} _x350 1x500`,
			"StaleInStrictConsumer", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history{
				promqltest.LoadedStorage(t, "load 15s"+s.series+"\n"), time.Unix(0, 0).Add(82 * time.Minute),
				time.Unix(0, 0).Add(91 * time.Minute),
			}
			engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute})
			defer func() { require.NoError(t, engine.Close()) }()
			for _, rule := range readRules(t) {
				if rule.Alert == s.alert {
					require.Equal(t, s.fires, fires(t, engine, h, rule))
				}
			}
		})
	}
}
