package console

import (
	"errors"
	"fmt"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/frame/service"
	"example.com/twinbox/ops/admin/client"
)

// system is two services five seconds apart.
type system struct {
	t        *testing.T
	now      time.Time
	services []*client.Service
	samples  map[string][]sample
	routes   map[route]bool
}

func newSystem(t *testing.T) *system {
	t.Helper()
	s := &system{t: t, now: time.Now(), samples: map[string][]sample{}, routes: map[route]bool{}}
	for _, name := range []string{"customer", "notification"} {
		service, err := client.New(name, "127.0.0.1:1", "")
		require.NoError(t, err)
		s.services = append(s.services, service)
	}
	s.says("customer", "http_server_requests_in_flight 0\nhttp_server_requests_total 10\n"+
		lag("customer.profile", "customer.users.v1", 0)+lag("customer.mail", "notification.mails.v1", 0))
	s.says("notification", "lease_rows{handler=\"mail.verification\",state=\"pending\"} 0\n"+
		lag("notification.users", "customer.users.v1", 0))
	return s
}

func lag(consumer, topic string, records int) string {
	return fmt.Sprintf("kafka_consumer_lag_records{consumer=%q,partition=\"0\",topic=%q} %d\n", consumer, topic, records)
}

// says adds a sample, taken five seconds after the one before.
func (s *system) says(name, text string, checks ...service.CheckResult) {
	s.t.Helper()
	m, err := readMetrics(strings.NewReader(text))
	require.NoError(s.t, err)
	taken := sample{
		at: s.now.Add(time.Duration(len(s.samples[name])) * rateOver), metrics: m,
		ready: service.Readiness{Status: service.StatusReady, Checks: checks},
	}
	if len(checks) > 0 {
		taken.ready.Status = service.StatusNotReady
	}
	s.samples[name] = append(s.samples[name], taken)
	for _, r := range routesOf(name, m) {
		s.routes[r] = true
	}
}

func (s *system) frame() frame {
	return compose(s.now.Add(rateOver), s.services, s.samples, s.routes)
}

func (s *system) station(id string) station {
	s.t.Helper()
	var found *station
	s.frame().stations(func(one station) {
		if one.ID == id {
			found = &one
		}
	})
	require.NotNil(s.t, found, id)
	return *found
}

func (s *system) sentences() (all []string) {
	for _, c := range s.frame().Causes {
		all = append(all, c.Sentence)
	}
	return all
}

// The way of an event is there before the first event: from the services' edges to those who read their topics.
func TestTheStationsStandInTheirLanes(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	require.Equal(t, "customer/HTTP/customer customer/Outbox/customer customer/Relay/customer "+
		"customer/Topic/customer.users.v1 customer/Inbox/customer.profile notification/Inbox/notification.users "+
		"notification/Mail/mail.verification notification/Outbox/notification notification/Relay/notification "+
		"notification/Topic/notification.mails.v1 customer/Inbox/customer.mail", s.frame().layout())
	require.Equal(t, []string{"All is well."}, s.sentences())

	s.says("notification", `outbox_relay_published_total{topic="orders"} 1`+"\n"+
		`outbox_relay_published_total{topic="dlq.g.orders"} 1`+"\n")
	require.Contains(t, s.frame().layout(), "notification/Topic/orders", "a topic stands with its writer, whatever its name")
	require.NotContains(t, s.frame().layout(), "dlq")

	s.samples["customer"] = append(s.samples["customer"], sample{at: s.now, err: errors.New("refused")})
	require.Contains(t, s.frame().layout(), "customer/Inbox/customer.profile", "a service that is away keeps its stations")
	require.Equal(t, stateUnknown, s.station("customer/Inbox/customer.profile").State)
	require.Nil(t, s.station("customer/Inbox/customer.profile").Waiting)
	require.Contains(t, s.sentences(), "customer does not answer.")
}

func TestRatesAreGrowthPerSecond(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	require.Nil(t, s.station("customer/HTTP/customer").Rate, "one sample is no rate")
	s.says("customer", "http_server_requests_in_flight 0\nhttp_server_requests_total 25\n"+
		"outbox_events_added_total{topic=\"customer.users.v1\"} 10\n")
	require.InDelta(t, 3.0, *s.station("customer/HTTP/customer").Rate, 0)
	require.InDelta(t, 2.0, *s.station("customer/Outbox/customer").Rate, 0, "a counter begins with its first event")
	s = newSystem(t)
	s.says("customer", "http_server_requests_in_flight 0\nhttp_server_requests_total 5\n")
	require.InDelta(t, 1.0, *s.station("customer/HTTP/customer").Rate, 0, "a service that was started anew counts from 0")
}

func TestWhyItWaits(t *testing.T) {
	t.Parallel()
	failing := func(name string) service.CheckResult {
		return service.CheckResult{Name: name, Status: service.StatusFailing, Reason: "because"}
	}
	for want, says := range map[string]func(s *system){
		"Customer does not reach Kafka.":               func(s *system) { s.says("customer", "", failing("broker")) },
		"The database of customer is away.":            func(s *system) { s.says("customer", "", failing("database")) },
		"Notification does not reach the mail server.": func(s *system) { s.says("notification", "", failing("mail server")) },
		"The consumer customer.profile stands still.": func(s *system) {
			s.says("customer", lag("customer.profile", "customer.users.v1", 9), failing("consumer customer.profile"))
		},
		`The check "custom" of customer fails.`: func(s *system) { s.says("customer", "", failing("custom")) },
		"Events wait in the outbox customer.": func(s *system) {
			s.says("customer", "outbox_relay_lag_events 9\noutbox_relay_oldest_unpublished_seconds 60\n")
		},
		"customer.profile has set events aside.": func(s *system) {
			s.says("customer", lag("customer.profile", "customer.users.v1", 0)+
				`dead_letters_waiting{consumer="customer.profile",state="dead"} 2`+"\n")
		},
		"Of some mails it is not known whether they were sent.": func(s *system) {
			s.says("notification", `lease_rows{handler="mail.verification",state="uncertain"} 1`+"\n")
		},
		"Kafka refuses events of customer.": func(s *system) { s.says("customer", "outbox_relay_parked_keys 1\n") },
	} {
		s := newSystem(t)
		says(s)
		require.Equal(t, []string{want}, s.sentences())
		require.NotEqual(t, stateWell, s.frame().Causes[0].State)
	}
	s := newSystem(t)
	s.says("customer", "outbox_relay_lag_events 9\noutbox_relay_oldest_unpublished_seconds 60\n", failing("broker"),
		service.CheckResult{Name: "relay", Status: service.StatusWaiting, Reason: "for broker"})
	require.Equal(t, []string{"Customer does not reach Kafka."}, s.sentences(), "what follows from a cause is none")
	require.Equal(t, stateStopped, s.station("customer/Relay/customer").State)
}

const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}' javascript:alert(1)`

// Whatever a service says is text on the page.
func TestTheFlowShowsTextAsText(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.says("customer", lag(hostile, hostile, 1), service.CheckResult{Name: hostile, Status: "failing", Reason: hostile})
	body, err := render("flow", s.frame())
	require.NoError(t, err)
	requireHarmless(t, string(body))
	require.Contains(t, html.UnescapeString(string(body)), hostile)
}

// requireHarmless fails where a hostile text has become a tag or an address.
func requireHarmless(t *testing.T, body string) {
	t.Helper()
	for _, bad := range []string{"<script>", "<img src=x", `href="javascript:`, `action="javascript:`} {
		require.NotContains(t, body, bad)
	}
}
