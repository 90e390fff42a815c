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
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/verify"
)

type system struct {
	*flow
	now time.Time
}

func newSystem(t *testing.T) *system {
	t.Helper()
	var cfg Config
	for _, name := range []string{"customer", "notification"} {
		s, err := client.New(name, "127.0.0.1:1", "")
		require.NoError(t, err)
		cfg.Services = append(cfg.Services, s)
	}
	s := &system{flow: newFlow(cfg), now: time.Now()}
	s.says("customer", one("http", "customer", ""), one("outbox", "customer", ""), one("relay", "customer", ""),
		one("topic", "customer.users.v1", ""), one("inbox", "customer.profile", "customer.users.v1"),
		one("inbox", "customer.mail", "notification.mails.v1"))
	s.says("notification", one("mail", "mail.verification", ""), one("outbox", "notification", ""),
		one("relay", "notification", ""), one("topic", "notification.mails.v1", ""),
		one("inbox", "notification.users", "customer.users.v1"))
	return s
}

func one(kind, name, topic string) adminapi.Station {
	return adminapi.Station{
		Kind: kind, Name: name, Topic: topic, Passed: new(10.0), Waiting: new(0.0), AgeSeconds: new(0.0),
		State: adminapi.Well,
	}
}

func (s *system) watched(name string) *watched {
	for _, w := range s.services {
		if w.Name == name {
			return w
		}
	}
	panic(name)
}

func (s *system) says(name string, stations ...adminapi.Station) {
	s.keep(s.watched(name), sample{
		at: s.now, Stations: adminapi.Stations{Service: name, Status: service.StatusReady, Stations: stations},
	})
}

func (s *system) has(name string, causes ...service.Cause) {
	s.keep(s.watched(name), sample{at: s.now, Stations: adminapi.Stations{
		Service: name, Status: service.StatusReady, Causes: causes, Stations: s.watched(name).known.Stations,
	}})
}

func (s *system) fails(name string) {
	s.keep(s.watched(name), sample{at: s.now, err: errors.New("refused")})
}

func (s *system) stations() (all []station) {
	for _, l := range s.view(s.now).Lanes {
		all = append(all, l.Stations...)
		for _, topic := range l.Topics {
			all = append(append(all, topic.station), topic.Inboxes...)
		}
	}
	return all
}

func (s *system) layout() string {
	var ids []string
	for _, shown := range s.stations() {
		ids = append(ids, shown.ID)
	}
	return strings.Join(ids, " ")
}

func (s *system) station(t *testing.T, id string) station {
	t.Helper()
	for _, shown := range s.stations() {
		if shown.ID == id {
			return shown
		}
	}
	require.Fail(t, "no station", id)
	return station{}
}

func TestTheStationsAreInTheirLanes(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	const layout = "customer/http/customer customer/outbox/customer customer/relay/customer " +
		"customer/topic/customer.users.v1 customer/inbox/customer.profile notification/inbox/notification.users " +
		"notification/mail/mail.verification notification/outbox/notification notification/relay/notification " +
		"notification/topic/notification.mails.v1 customer/inbox/customer.mail"
	require.Equal(t, layout, s.layout())
	s.fails("customer")
	require.Equal(t, layout, s.layout())
	away := s.station(t, "customer/inbox/customer.profile")
	require.Equal(t, adminapi.Unknown, away.State)
	require.Nil(t, away.Waiting)
	require.Equal(t, adminapi.Unknown, s.station(t, "customer/topic/customer.users.v1").State)
	require.Equal(t, adminapi.Well, s.station(t, "notification/inbox/notification.users").State)
	s.now = s.now.Add(answerAge + time.Second)
	require.Equal(t, adminapi.Unknown, s.station(t, "notification/relay/notification").State, "an old answer is none")
}

func TestATopicIsWithItsWriter(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.says("notification", one("inbox", "notification.people", "people"))
	require.Contains(t, s.layout(), "notification/topic/people notification/inbox/notification.people")
	require.Equal(t, adminapi.Unknown, s.station(t, "notification/topic/people").State, "its writer has not named it")
	s.says("customer", one("topic", "people", ""))
	require.Contains(t, s.layout(), "customer/topic/people notification/inbox/notification.people")
}

func TestATopicWaitsForItsSlowestReader(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	slow := one("inbox", "notification.users", "customer.users.v1")
	slow.Waiting, slow.AgeSeconds = new(7.0), new(3.0)
	s.says("notification", slow)
	topic := s.station(t, "customer/topic/customer.users.v1")
	require.InDelta(t, 7.0, *topic.Waiting, 0)
	require.InDelta(t, 3.0, *topic.AgeSeconds, 0)
	s.fails("notification")
	require.Nil(t, s.station(t, "customer/topic/customer.users.v1").Waiting, "the slowest one is unknown")
}

func TestRatesAreGrowthPerSecond(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	require.Nil(t, s.station(t, "customer/http/customer").Rate, "one answer is no rate")
	s.now = s.now.Add(5 * time.Second)
	http := one("http", "customer", "")
	http.Passed, http.Refused = new(25.0), nil
	s.says("customer", http)
	require.InDelta(t, 3.0, *s.station(t, "customer/http/customer").Rate, 0)
	s.now = s.now.Add(5 * time.Second)
	http.Passed = new(5.0)
	s.says("customer", http)
	require.InDelta(t, 1.0, *s.station(t, "customer/http/customer").Rate, 0, "a new process counts from 0")
}

func TestAChartHasGaps(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.now = time.Unix(s.now.Unix()/10*10, 0)
	step := func(waiting float64) {
		s.now = s.now.Add(chartStep)
		s.has("notification")
		outbox := one("outbox", "customer", "")
		outbox.Waiting = &waiting
		s.says("customer", outbox)
	}
	step(2)
	step(4)
	s.now = s.now.Add(chartStep)
	s.has("notification")
	s.fails("customer")
	step(8)
	waiting := s.view(s.now).Charts[1]
	require.Equal(t, "Waiting", waiting.Title)
	require.InDelta(t, 8.0, waiting.Top, 0)
	require.InDelta(t, 8.0, *waiting.Lines[0].Latest, 0)
	require.Equal(t, "M85 100.0L85 100.0L86 75.0L87 50.0M89 0.0L89 0.0", waiting.Lines[0].Path)
	s.now = s.now.Add(chartStep)
	require.Nil(t, s.view(s.now).Charts[1].Lines[0].Latest, "a step that has not been answered yet is not known")
	for range 2 * chartSteps {
		step(1)
	}
	require.LessOrEqual(t, len(s.watched("customer").past), chartSteps)
}

func TestTheCausesOfAllServices(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	require.Empty(t, s.view(s.now).Causes)
	require.Equal(t, "All is well.", s.view(s.now).Headline())
	since := s.now.Add(-time.Minute)
	down := func(means string) service.Cause {
		return service.Cause{Code: "dependency_down", Station: "broker", What: "It is down.", Means: means, Stops: true}
	}
	letters := service.Cause{Code: "dead_letters", Station: "inbox/customer.profile", What: "13.", Since: since}
	s.has("customer", letters)
	s.has("notification", service.Cause{Code: "keys_parked", What: "1."}, service.Cause{Code: "unknown", What: "?"})
	shown := func() (all []string) {
		for _, c := range s.view(s.now).Causes {
			all = append(all, fmt.Sprint(strings.Join(c.Services, "+"), " ", c.Code, " ", c.State, " ", c.Verb, " ", c.Page))
		}
		return all
	}
	require.Equal(t, []string{
		"notification unknown unknown  ", "customer dead_letters watch replay /dead-letters",
		"notification keys_parked watch release ",
	}, shown())
	s.has("customer", down("257 wait."), letters)
	s.has("notification", down("3 wait."))
	require.Equal(t, []string{
		"customer+notification dependency_down stopped  ", "customer dead_letters watch replay /dead-letters",
	}, shown())
	require.Equal(t, []effect{{"customer", "257 wait."}, {"notification", "3 wait."}}, s.view(s.now).Causes[0].Effects)
	headline := s.view(s.now).Headline()
	s.has("customer", down("258 wait."), letters)
	require.Equal(t, headline, s.view(s.now).Headline(), "a figure changes nothing for those who listen")
	require.Equal(t, "customer.profile", s.view(s.now).Causes[1].Consumer)
	s.fails("customer")
	require.Equal(t, "notification dependency_down stopped  ", shown()[0])
	require.Equal(t, "customer no_answer unknown  ", shown()[1])
}

func TestEndedCausesAreRemembered(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.has("customer", service.Cause{Code: "keys_parked", Station: "relay", What: "1 key."})
	s.now = s.now.Add(time.Second)
	s.has("customer", service.Cause{Code: "keys_parked", Station: "relay", What: "2 keys."})
	require.Empty(t, s.view(s.now).Ended)
	s.fails("customer")
	require.Empty(t, s.view(s.now).Ended, "no answer ends nothing")
	s.has("customer", service.Cause{Code: "keys_parked", Station: "relay", What: "2 keys."})
	s.has("customer")
	found := s.view(s.now).Ended
	require.Len(t, found, 1)
	require.Equal(t, "2 keys.", found[0].What)
	require.Equal(t, s.now, found[0].Until)
}

func TestTheLastVerification(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	require.Empty(t, s.view(s.now).Lanes[0].Verified)
	s.cfg.Dir = t.TempDir()
	require.Equal(t, "not verified: twinbox verify", s.view(s.now).Lanes[0].Verified)
	report := verify.Report{"customer": {At: s.now.Add(-3 * time.Minute)}}
	write := func() { require.NoError(t, verify.WriteReport(s.cfg.Dir, report)) }
	write()
	require.Equal(t, "verified 3m ago: "+report["customer"].Summary(), s.view(s.now).Lanes[0].Verified)
	require.Empty(t, s.view(s.now).Causes)
	report["customer"].Findings = []verify.Finding{{Kind: verify.Lost}, {Kind: verify.Lost}}
	write()
	require.Equal(t, "verified 3m ago: 2 lost", s.view(s.now).Lanes[0].Verified)
	require.Equal(t, "verification_failed", s.view(s.now).Causes[0].Code)
	require.Equal(t, "twinbox verify", s.view(s.now).Causes[0].Command)
}

const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}' javascript:alert(1)`

func TestTheFlowShowsTextAsText(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.says("customer", one("topic", hostile, ""), one("inbox", hostile, hostile))
	s.has("customer", service.Cause{
		Code: hostile, What: hostile, Means: hostile, Do: hostile, Command: hostile, Details: hostile, Station: hostile,
	})
	s.fails("notification")
	body, err := render("flow", s.view(s.now))
	require.NoError(t, err)
	requireHarmless(t, string(body))
	require.Contains(t, html.UnescapeString(string(body)), hostile)
}

func requireHarmless(t *testing.T, body string) {
	t.Helper()
	for _, bad := range []string{"<script>", "<img src=x", `href="javascript:`, `action="javascript:`} {
		require.NotContains(t, body, bad)
	}
}

func TestThePictureOfAStory(t *testing.T) {
	t.Parallel()
	require.Nil(t, pictureOf(nil))
	at := time.Now()
	told := []adminapi.StoryStep{
		{At: at, Station: "request", Service: "customer", Outcome: "signed_up"},
		{At: at.Add(3 * time.Millisecond), Station: "outbox", Service: "customer", Outcome: "published"},
		{At: at.Add(time.Second), Station: "dead_letter", Service: "notification", Consumer: "users", Outcome: "waiting"},
		{At: at.Add(time.Minute), Station: "outbox", Service: "customer", Outcome: "held"},
	}
	p := pictureOf(told)
	require.Len(t, p.Rows, 3)
	require.Equal(t, "users dead letter", p.Rows[2].Name)
	require.Equal(t, "M238 28L334 74L430 120L526 74", p.Way)
	require.Equal(t, dot{X: 430, Y: 120, Label: "waiting", After: "+1s", State: adminapi.Stopped}, p.Dots[2])
	require.Equal(t, adminapi.Watch, p.Dots[3].State)
	for len(told) < 30 {
		told = append(told, told[0])
	}
	require.Len(t, pictureOf(told).Dots, maxDots)
	require.Equal(t, 6, pictureOf(told).More)
}
