package console

import (
	"errors"
	"fmt"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/ops/metrics"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/verify"
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
	s.says("customer", "http_server_requests_in_flight 0\nhttp_server_requests_total 10\n"+writes("customer.users.v1")+
		lag("customer.profile", "customer.users.v1", 0)+lag("customer.mail", "notification.mails.v1", 0))
	s.says("notification", "lease_rows{handler=\"mail.verification\",state=\"pending\"} 0\n"+
		writes("notification.mails.v1")+lag("notification.users", "customer.users.v1", 0))
	return s
}

// writes names a topic that the service writes to and has not written to yet.
func writes(topic string) string { return fmt.Sprintf("outbox_topic_info{topic=%q} 1\n", topic) }

func lag(consumer, topic string, records int) string {
	return fmt.Sprintf("kafka_consumer_lag_records{consumer=%q,partition=\"0\",topic=%q} %d\n", consumer, topic, records)
}

// says adds a sample, taken five seconds after the one before.
func (s *system) says(name, text string, checks ...service.CheckResult) {
	s.t.Helper()
	m, err := metrics.Read(strings.NewReader(text))
	require.NoError(s.t, err)
	taken := sample{
		at:     s.now.Add(time.Duration(len(s.samples[name])) * rateOver),
		Sample: metrics.Sample{Metrics: m, Ready: service.Readiness{Status: service.StatusReady, Checks: checks}},
	}
	if len(checks) > 0 {
		taken.Ready.Status = service.StatusNotReady
	}
	s.samples[name] = append(s.samples[name], taken)
	for _, r := range routesOf(name, m) {
		s.routes[r] = true
	}
}

func (s *system) frame() frame {
	return compose(s.now.Add(rateOver), s.services, s.samples, s.routes)
}

// layout names the stations in their order.
func (f frame) layout() string {
	var ids []string
	f.stations(func(s station) { ids = append(ids, s.ID) })
	return strings.Join(ids, " ")
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

// The way of an event is there before the first event: from the services' edges to the consumers of their topics.
func TestTheStationsStandInTheirLanes(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	require.Equal(t, "customer/HTTP/customer customer/Outbox/customer customer/Relay/customer "+
		"customer/Topic/customer.users.v1 customer/Inbox/customer.profile notification/Inbox/notification.users "+
		"notification/Mail/mail.verification notification/Outbox/notification notification/Relay/notification "+
		"notification/Topic/notification.mails.v1 customer/Inbox/customer.mail", s.frame().layout())

	s.says("notification", `outbox_relay_published_total{topic="orders"} 1`+"\n"+
		`outbox_relay_published_total{topic="dlq.g.orders"} 1`+"\n")
	require.Contains(t, s.frame().layout(), "notification/Topic/orders", "an older service names only what it has written")
	require.NotContains(t, s.frame().layout(), "dlq")

	s.samples["customer"] = append(s.samples["customer"], sample{at: s.now, err: errors.New("refused")})
	require.Contains(t, s.frame().layout(), "customer/Inbox/customer.profile", "a service that is away keeps its stations")
	require.Equal(t, stateUnknown, s.station("customer/Inbox/customer.profile").State)
	require.Nil(t, s.station("customer/Inbox/customer.profile").Waiting)
}

// A topic may have any name, such as one that begins with a project's name or with the name of its reader.
func TestATopicStandsWithItsWriterBeforeItsFirstEvent(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"acme.customer.people.v1", "notification.people.v1", "people"} {
		s := newSystem(t)
		s.says("notification", lag("notification.people", name, 0))
		require.Contains(t, s.frame().layout(), "notification/Topic/"+name, "its writer has not answered yet")
		s.says("customer", writes(name)+writes("dlq.g."+name))
		require.Contains(t, s.frame().layout(), "customer/Topic/"+name+" notification/Inbox/notification.people")
		require.NotContains(t, s.frame().layout(), "Topic/dlq")
	}
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

// A finding in the last report is never under "All is well".
func TestTheLastReportIsShown(t *testing.T) {
	t.Parallel()
	f := newSystem(t).frame()
	f.addReport(nil)
	require.Empty(t, f.Lanes[0].Verdict)
	require.Equal(t, "All is well.", f.Causes[0].Sentence)
	clean := &verify.Verdict{At: f.At.Add(-3 * time.Minute)}
	f.addReport(verify.Report{"customer": clean})
	require.Equal(t, "verified 3 min ago: nothing is lost, doubled, altered, invented or reordered", f.Lanes[0].Verdict)
	require.Equal(t, "All is well.", f.Causes[0].Sentence)
	wrong := &verify.Verdict{At: clean.At, Findings: []verify.Finding{{Kind: verify.Twice}, {Kind: verify.Twice}}}
	f.addReport(verify.Report{"customer": wrong, "notification": clean})
	require.Equal(t, "verified 3 min ago: 2 doubled", f.Lanes[0].Verdict)
	require.Equal(t, []cause{{
		Service: "customer", State: stateStopped, Sentence: "The last verification found 2 doubled.", Detail: "3 min ago",
		Command: "twinbox verify",
	}}, f.Causes)
}

// A relay that refuses has stopped, and so has one without a leader.
func TestARelayThatRefusesHasStopped(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	const leads = "outbox_relay_has_leader 1\n"
	for text, want := range map[string][2]string{
		leads + "outbox_refused 0\n":                    {stateWell, "leads"},
		leads + "outbox_refused 1\n":                    {stateStopped, "refuses"},
		"outbox_relay_has_leader 0\noutbox_refused 1\n": {stateStopped, "refuses"},
	} {
		s.says("customer", text)
		found := s.station("customer/Relay/customer")
		require.Equal(t, want, [2]string{found.State, found.Note}, text)
	}
}

// What a service says of itself is what stands on the page; one that cannot say it is described from outside.
func TestWhyItWaits(t *testing.T) {
	t.Parallel()
	since := time.Now().Add(-time.Minute)
	says := func(code string) func(*sample) {
		return func(s *sample) {
			s.cause = adminapi.Cause{
				Code: code, Sentence: "S.", Since: since, Command: "twinbox x",
				Figures: map[string]float64{"records_behind": 1200, "seconds": 60},
			}
		}
	}
	for name, c := range map[string]struct {
		change                  func(*sample)
		state, sentence, detail string
	}{
		"well":     {says("all_well"), stateWell, "All is well.", "0 events committed and 0 handled per second."},
		"stopped":  {says("dependency_down"), stateStopped, "S.", "records behind 1,200 · for 65 s"},
		"refused":  {says("relay_refused"), stateStopped, "S.", "records behind 1,200 · for 65 s"},
		"a loss":   {says("database_went_back"), stateWatch, "S.", "records behind 1,200 · for 65 s"},
		"passing":  {says("dead_letters"), stateWatch, "S.", "records behind 1,200 · for 65 s"},
		"away":     {func(s *sample) { s.err = errors.New("no") }, stateStopped, "The service does not answer.", "no"},
		"draining": {func(s *sample) { s.Ready.Status = "draining" }, stateWatch, "The service is shutting down.", ""},
		"without a word": {func(s *sample) {
			s.Ready = service.Readiness{Status: service.StatusNotReady, Checks: []service.CheckResult{
				{Name: "relay", Status: service.StatusWaiting, Reason: "for broker"},
				{Name: "broker", Status: service.StatusFailing, Reason: "refused"},
			}}
		}, stateStopped, "The service is not ready.", "broker: refused "},
	} {
		s := newSystem(t)
		s.now = since.Add(time.Minute)
		s.says("customer", "http_server_requests_in_flight 0\n")
		c.change(&s.samples["customer"][1])
		found := s.frame().Causes
		require.Len(t, found, 1, name)
		require.Equal(t, []string{c.state, c.sentence}, []string{found[0].State, found[0].Sentence}, name)
		require.Equal(t, c.detail, found[0].Detail, name)
	}
}

// A server that all services share is down once.
func TestOneOutageIsOneSentence(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	say := func(name, code, sentence string) {
		s.says(name, "http_server_requests_in_flight 0\n")
		s.samples[name][len(s.samples[name])-1].cause = adminapi.Cause{Code: code, Sentence: sentence}
	}
	said := func() (all []string) {
		for _, c := range s.frame().Causes {
			all = append(all, c.Service+": "+c.Sentence)
		}
		return all
	}
	say("customer", "dependency_down", "The broker has been down since 1: refused.")
	say("notification", "dependency_down", "The broker has been down since 2: reset.")
	require.Equal(t, []string{"customer, notification: The broker has been down since 1: refused."}, said())
	say("notification", "dependency_down", "The database has been down since 2: reset.")
	require.Len(t, said(), 2)
	say("customer", "dead_letters", "1 letter.")
	say("notification", "dead_letters", "1 letter.")
	require.Len(t, said(), 2, "each service has letters of its own")
}

const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}' javascript:alert(1)`

// A service's answer is text on the page.
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

// An arrow between two lanes is a way that events go.
func TestALaneIsJoinedToTheOneThatItReads(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	for _, name := range []string{"order", "payments"} {
		service, err := client.New(name, "127.0.0.1:1", "")
		require.NoError(t, err)
		s.services = append(s.services, service)
	}
	s.says("order", writes("order.timers.v1")+
		lag("order.payments", "payments.payments.v1", 0)+lag("order.timers", "order.timers.v1", 0))
	s.says("payments", "http_server_requests_in_flight 0\n"+writes("payments.payments.v1"))
	joined := func() (all []string) {
		for _, l := range s.frame().Lanes {
			all = append(all, fmt.Sprint(l.Service, " ", l.Joined, " ", l.Back))
		}
		return all
	}
	require.Equal(t, []string{
		"customer false false", "notification true true", "order false false", "payments false false",
	}, joined())

	s.says("payments", "http_server_requests_in_flight 0\n"+lag("payments.orders", "order.timers.v1", 0))
	require.Equal(t, []string{
		"customer false false", "notification true true", "order false false", "payments true true",
	}, joined())
}
