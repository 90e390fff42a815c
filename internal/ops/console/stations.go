package console

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/ops/metrics"
	"example.com/twinbox/internal/service"
)

// The states of a station and of a cause, from the best to the worst. A page shows each by a word beside its colour.
const (
	stateWell    = "well"
	stateWatch   = "watch"   // something waits, or was set aside
	stateStopped = "stopped" // a readiness check says that nothing passes
	stateUnknown = "unknown" // the service does not answer, or not about this
)

// waitsLong is the age in seconds from which what waits is worth a look.
const waitsLong = 5.0

// station is a place that events pass. What is not known is nil.
type station struct {
	ID, Kind, Name     string
	Rate, Waiting, Age *float64 // per second; events; seconds
	State, Note        string
}

// watch says of a station how much of something there is beside what passes it.
func (s *station) watch(n *float64, what string) {
	if n != nil && *n > 0 {
		s.State, s.Note = stateWatch, number(n)+" "+what
	}
}

// topic is a station with the inboxes that read it.
type topic struct {
	station
	Inboxes []station
}

// lane is the way from a service's edge to the consumers of its topics.
type lane struct {
	Service  string
	Metrics  string // its address
	State    string
	Verdict  string // of the last verification, with its age; "": there was none
	Stations []station
	Topics   []topic
	Joined   bool // the lane above ends at an inbox of this service
	Back     bool // it runs from right to left, from where the lane above ends
}

// join says how the lane stands to the one above it.
func (l lane) join(above lane) lane {
	if n := len(above.Topics); n > 0 {
		if inboxes := above.Topics[n-1].Inboxes; len(inboxes) > 0 {
			l.Joined = strings.HasPrefix(inboxes[len(inboxes)-1].ID, l.Service+"/")
		}
	}
	l.Back = l.Joined && !above.Back
	return l
}

// frame is the whole flow at one time.
type frame struct {
	At     time.Time
	Lanes  []lane
	Causes []cause
}

// stations calls yield for each of the frame's.
func (f frame) stations(yield func(station)) {
	for _, l := range f.Lanes {
		for _, s := range l.Stations {
			yield(s)
		}
		for _, t := range l.Topics {
			yield(t.station)
			for _, s := range t.Inboxes {
				yield(s)
			}
		}
	}
}

// route is a topic that a service reads, or writes if there is no consumer.
type route struct{ service, consumer, topic string }

// routesOf returns the routes that a service's metrics name. A service names the topics that it writes to and the lag
// of its consumers before the first event.
func routesOf(service string, m metrics.Set) []route {
	var found []route
	for _, lag := range m["kafka_consumer_lag_records"] {
		found = append(found, route{service, lag.Labels["consumer"], lag.Labels["topic"]})
	}
	for _, name := range []string{"outbox_topic_info", "outbox_events_added_total", "outbox_relay_published_total"} {
		for _, written := range m.Values(name, "topic") {
			if !strings.HasPrefix(written, deadletter.CopyPrefix) { // no consumer reads copies
				found = append(found, route{service: service, topic: written})
			}
		}
	}
	return found
}

// view is what is known of a service: its newest sample, and the one that rates begin at.
type view struct {
	name     string
	old, cur sample
	answers  bool
}

func viewOf(name string, kept []sample, now time.Time) view {
	v := view{name: name}
	if len(kept) > 0 {
		v.old, v.cur = kept[0], kept[len(kept)-1]
		v.answers = v.cur.err == nil && now.Sub(v.cur.at) < 4*rateOver
	}
	return v
}

// rate is the mean growth of counters. Those that are not there have counted nothing; those that fell began anew.
func (v view) rate(name string, labels ...string) *float64 {
	seconds := v.cur.at.Sub(v.old.at).Seconds()
	if !v.answers || v.old.err != nil || seconds <= 0 {
		return nil
	}
	cur, old := metrics.Sum(v.cur.Metrics.Having(name, labels...)), metrics.Sum(v.old.Metrics.Having(name, labels...))
	switch {
	case cur == nil:
		return new(0.0)
	case old != nil && *old <= *cur:
		*cur -= *old
	}
	return new(math.Round(*cur/seconds*10) / 10)
}

func (v view) gauge(of func([]metrics.Series) *float64, name string, labels ...string) *float64 {
	if !v.answers {
		return nil
	}
	return of(v.cur.Metrics.Having(name, labels...))
}

// finish sets what follows from the figures and from the readiness checks that a station depends on.
func (v view) finish(s station, checks ...string) station {
	s.ID = v.name + "/" + s.Kind + "/" + s.Name
	switch {
	case !v.answers:
		s.State, s.Note = stateUnknown, "no answer"
	case slices.ContainsFunc(v.cur.Ready.Checks, func(c service.CheckResult) bool {
		return slices.Contains(checks, c.Name) && c.Status != service.StatusOK
	}):
		s.State, s.Note = stateStopped, "stands"
	case s.State == "" && s.Age != nil && *s.Age >= waitsLong:
		s.State = stateWatch
	case s.State == "":
		s.State = stateWell
	}
	return s
}

func compose(now time.Time, services []*client.Service, samples map[string][]sample, routes map[route]bool) frame {
	f := frame{At: now}
	views := map[string]view{}
	for _, s := range services {
		views[s.Name] = viewOf(s.Name, samples[s.Name], now)
	}
	homes := homesOf(services, routes)
	var above lane
	for _, s := range services {
		v := views[s.Name]
		l := lane{Service: s.Name, Metrics: s.URL("/metrics"), State: v.state(), Stations: v.own()}
		for _, name := range slices.Sorted(maps.Keys(homes)) {
			if homes[name] == s.Name {
				l.Topics = append(l.Topics, topicOf(name, v, views, routes))
			}
		}
		above = l.join(above)
		f.Lanes = append(f.Lanes, above)
	}
	f.Causes = causesOf(f, services, views)
	return f
}

// homesOf returns the service in whose lane each topic is drawn: its writer, or the first of its readers while the
// writer is unknown because it has never answered.
func homesOf(services []*client.Service, routes map[route]bool) map[string]string {
	homes, written := map[string]string{}, map[string]bool{}
	for _, s := range services {
		for r := range routes {
			if writes := r.consumer == ""; r.service == s.Name && !written[r.topic] && (writes || homes[r.topic] == "") {
				homes[r.topic], written[r.topic] = s.Name, writes
			}
		}
	}
	return homes
}

func (v view) state() string {
	switch {
	case !v.answers:
		return stateUnknown
	case v.cur.Ready.Status != service.StatusReady:
		return stateStopped
	}
	return stateWell
}

// own are the stations inside the service: where events begin, and its outbox.
func (v view) own() []station {
	var all []station
	m := v.cur.Metrics
	if len(m["http_server_requests_in_flight"]) > 0 {
		all = append(all, v.finish(station{
			Kind: "HTTP", Name: v.name, Rate: v.rate("http_server_requests_total"),
			Waiting: v.gauge(metrics.Sum, "http_server_requests_in_flight"),
		}, "tables"))
	}
	for _, handler := range m.Values("lease_rows", "handler") {
		s := station{
			Kind: "Mail", Name: handler, Rate: v.rate("lease_attempts_total", "handler", handler),
			Waiting: v.gauge(metrics.Sum, "lease_rows", "handler", handler, "state", "pending"),
			Age:     v.gauge(metrics.Highest, "lease_oldest_seconds", "handler", handler, "state", "pending"),
		}
		s.watch(v.gauge(metrics.Sum, "lease_rows", "handler", handler, "state", "uncertain"), "uncertain")
		all = append(all, v.finish(s, "mail server", "mails"))
	}
	outbox := station{
		Kind: "Outbox", Name: v.name, Rate: v.rate("outbox_events_added_total"),
		Waiting: v.gauge(metrics.Sum, "outbox_relay_lag_events"),
		Age:     v.gauge(metrics.Highest, "outbox_relay_oldest_unpublished_seconds"),
	}
	relay := station{
		Kind: "Relay", Name: v.name, Rate: v.rate("outbox_relay_published_total"),
		Waiting: v.gauge(metrics.Sum, "outbox_relay_held_events"), Note: "leads",
	}
	if leader := v.gauge(metrics.Highest, "outbox_relay_has_leader"); leader != nil && *leader == 0 {
		relay.State, relay.Note = stateStopped, "no leader"
	}
	if refused := v.gauge(metrics.Highest, "outbox_refused"); refused != nil && *refused == 1 {
		relay.State, relay.Note = stateStopped, "refuses"
	}
	relay.watch(v.gauge(metrics.Sum, "outbox_relay_parked_keys"), "keys parked")
	return append(all, v.finish(outbox, "database", "tables"), v.finish(relay, "relay", "held events", "broker"))
}

// topicOf is a topic of the lane of home, with its consumers in all services.
func topicOf(name string, home view, views map[string]view, routes map[route]bool) topic {
	t := topic{station: station{Kind: "Topic", Name: name, Rate: home.rate("outbox_relay_published_total", "topic", name)}}
	for r := range routes {
		if r.topic != name || r.consumer == "" {
			continue
		}
		v := views[r.service]
		s := station{
			Kind: "Inbox", Name: r.consumer, Rate: v.rate("inbox_messages_total", "consumer", r.consumer),
			Waiting: v.gauge(metrics.Sum, "kafka_consumer_lag_records", "consumer", r.consumer, "topic", name),
			Age:     v.gauge(metrics.Highest, "kafka_consumer_lag_seconds", "consumer", r.consumer, "topic", name),
		}
		s.watch(v.gauge(metrics.Sum, "dead_letters_waiting", "consumer", r.consumer), "set aside")
		t.Inboxes = append(t.Inboxes, v.finish(s, "consumer "+r.consumer, "database"))
	}
	slices.SortFunc(t.Inboxes, func(a, b station) int { return strings.Compare(a.ID, b.ID) })
	for _, inbox := range t.Inboxes { // what the slowest reader has not read is what waits on the topic
		if inbox.Waiting != nil && (t.Waiting == nil || *inbox.Waiting > *t.Waiting) {
			t.Waiting, t.Age = inbox.Waiting, inbox.Age
		}
	}
	t.station = home.finish(t.station, "broker")
	return t
}

// cause is why a service waits, or that all is well.
type cause struct {
	Service, State, Sentence string
	Detail                   string // changes from frame to frame
	Command                  string // of the command line, that helps
	Link                     string // of this page, that helps
	shared                   string // what other services wait for, too; "": it is this one's own
}

// passing are the codes of causes under which events pass all the same, with the page that helps.
var passing = map[string]string{
	"dead_letters": "/dead-letters", "waits_for_gap": "/dead-letters", "mail_uncertain": "/mails?state=uncertain",
	"keys_parked": "", "consumer_paused": "", "handler_slow": "", "relay_at_limit": "", "consumer_behind": "",
	"database_went_back": "/lost", "broker_went_back": "", "unknown": "",
}

// causesOf says why the flow is not as it should be, in the words of the services; that all is well where it is.
func causesOf(f frame, services []*client.Service, views map[string]view) []cause {
	var found []cause
	for _, s := range services {
		v := views[s.Name]
		switch said := v.cur.cause; {
		case v.cur.at.IsZero():
			found = append(found, cause{State: stateUnknown, Sentence: "Asking…", Service: s.Name, shared: "answer"})
		case !v.answers:
			c := cause{State: stateStopped, Sentence: "The service does not answer.", Service: s.Name}
			if v.cur.err != nil {
				c.Detail = v.cur.err.Error()
			}
			found = append(found, c)
		case v.cur.Ready.Status == service.StatusDraining:
			found = append(found, cause{State: stateWatch, Sentence: "The service is shutting down.", Service: s.Name})
		case said.Code != "" && said.Code != service.CodeAllWell:
			found = append(found, causeOf(s.Name, said, f.At))
		case v.cur.Ready.Status != service.StatusReady:
			found = append(found, unready(s.Name, v.cur.Ready))
		}
	}
	if len(found) > 0 {
		return together(found)
	}
	in, out := 0.0, 0.0
	f.stations(func(s station) {
		switch {
		case s.Rate == nil:
		case s.Kind == "Outbox":
			in += *s.Rate
		case s.Kind == "Inbox":
			out += *s.Rate
		}
	})
	detail := fmt.Sprintf("%s events committed and %s handled per second.", rate(&in), rate(&out))
	return []cause{{State: stateWell, Sentence: "All is well.", Detail: detail}}
}

// together says once what several services say of a server that they share, in the words of the first.
func together(found []cause) (once []cause) {
	for _, c := range found {
		i := slices.IndexFunc(once, func(said cause) bool { return c.shared != "" && said.shared == c.shared })
		if i < 0 {
			once = append(once, c)
			continue
		}
		once[i].Service += ", " + c.Service
	}
	return once
}

func causeOf(name string, said adminapi.Cause, now time.Time) cause {
	link, passes := passing[said.Code]
	c := cause{Service: name, State: stateStopped, Sentence: said.Sentence, Command: said.Command, Link: link}
	if passes {
		c.State = stateWatch
	}
	if said.Code == "dependency_down" {
		c.shared, _, _ = strings.Cut(said.Sentence, " since ") // the server, by its name
	}
	var details []string
	for _, figure := range slices.Sorted(maps.Keys(said.Figures)) {
		if figure != "seconds" {
			details = append(details, strings.ReplaceAll(figure, "_", " ")+" "+number(new(said.Figures[figure])))
		}
	}
	if !said.Since.IsZero() {
		details = append(details, "for "+age(new(now.Sub(said.Since).Seconds())))
	}
	c.Detail = strings.Join(details, " · ")
	return c
}

// unready is what a service shows that does not explain itself.
func unready(name string, ready service.Readiness) cause {
	c := cause{Service: name, State: stateStopped, Sentence: "The service is not ready."}
	for _, check := range ready.Checks {
		if check.Status == service.StatusFailing {
			c.Detail += check.Name + ": " + check.Reason + " "
		}
	}
	return c
}
