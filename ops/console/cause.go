package console

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/twinbox/frame/service"
	"example.com/twinbox/ops/admin/client"
)

// cause is why something waits, or needs a person.
type cause struct {
	State, Sentence, Detail string
	Command                 string // of the command line, that helps
	Link                    string // of this page, that helps
}

// sentences say what a failing readiness check means; %s is the service.
var sentences = map[string]string{
	"database":    "The database of %s is away.",
	"tables":      "%s cannot write to its tables.",
	"broker":      "%s does not reach Kafka.",
	"relay":       "%s publishes nothing.",
	"held events": "Kafka does not take some events of %s.",
	"mail server": "%s does not reach the mail server.",
	"mails":       "%s sends no mails.",
}

// causesOf says in the order of their weight why the flow is not as it should be; one cause that says that all is well
// where there is none.
func causesOf(f frame, services []*client.Service, views map[string]view) []cause {
	var found []cause
	opinions := 0
	for _, s := range services {
		v := views[s.Name]
		switch {
		case v.answers && v.cur.opinion != nil:
			opinions++
			if !v.cur.opinion.Well {
				found = append(found, v.cur.opinion.cause())
			}
		case v.cur.at.IsZero():
			found = append(found, cause{State: stateUnknown, Sentence: "Asking " + s.Name + " ..."})
		case !v.answers:
			c := cause{State: stateStopped, Sentence: s.Name + " does not answer.", Detail: "at " + s.Addr}
			if v.cur.err != nil {
				c.Detail = v.cur.err.Error()
			}
			found = append(found, c)
		default:
			found = append(found, failing(s.Name, v.cur.ready)...)
		}
	}
	stopped := len(found) > 0
	f.stations(func(s station) {
		switch {
		case s.State != stateWatch || opinions == len(services):
		case s.Kind == "Inbox" && s.Link != "":
			found = append(found, cause{
				State: stateWatch, Sentence: s.Name + " has set events aside.", Detail: s.Note + ", with what waits behind them.",
				Command: "twinbox dlq list", Link: s.Link,
			})
		case s.Kind == "Mail" && s.Link != "":
			found = append(found, cause{
				State: stateWatch, Sentence: "Of some mails it is not known whether they were sent.", Detail: s.Note,
				Command: "twinbox mail list --state uncertain", Link: s.Link,
			})
		case s.Kind == "Relay":
			found = append(found, cause{
				State: stateWatch, Sentence: "Kafka refuses events of " + s.Name + ".", Detail: s.Note,
				Command: "twinbox outbox status",
			})
		case s.Kind != "Topic" && !stopped: // else it waits for what was said above, and a topic for its readers
			found = append(found, cause{
				State: stateWatch, Sentence: "Events wait in the " + strings.ToLower(s.Kind) + " " + s.Name + ".",
				Detail: fmt.Sprintf("%s, the oldest for %s.", number(s.Waiting), age(s.Age)),
			})
		}
	})
	if len(found) == 0 {
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
		return []cause{{
			State: stateWell, Sentence: "All is well.",
			Detail: fmt.Sprintf("Nothing waits. %s events committed and %s handled per second.", rate(&in), rate(&out)),
		}}
	}
	return found
}

// passing are the codes of causes under which events pass all the same.
var passing = map[string]string{
	"dead_letters": "/dead-letters", "waits_for_gap": "/dead-letters", "mail_uncertain": "/mails?state=uncertain",
	"keys_parked": "", "handler_slow": "", "relay_at_limit": "", "consumer_behind": "", "unknown": "",
}

func (o *opinion) cause() cause {
	link, passes := passing[o.Code]
	c := cause{State: stateStopped, Sentence: o.Sentence, Command: o.Command, Link: link}
	if passes {
		c.State = stateWatch
	}
	var figures []string
	for _, name := range slices.Sorted(maps.Keys(o.Figures)) {
		figures = append(figures, strings.ReplaceAll(name, "_", " ")+" "+number(new(o.Figures[name])))
	}
	if o.Since != nil {
		figures = append(figures, "since "+clock(*o.Since))
	}
	c.Detail = strings.Join(figures, " · ")
	return c
}

// failing are the checks that fail by themselves; those that wait for another one follow it.
func failing(name string, ready service.Readiness) []cause {
	var found []cause
	for _, check := range ready.Checks {
		if check.Status != service.StatusFailing {
			continue
		}
		sentence, known := sentences[check.Name]
		consumer, isConsumer := strings.CutPrefix(check.Name, "consumer ")
		switch {
		case known:
			sentence = fmt.Sprintf(sentence, name)
		case isConsumer:
			sentence = "The consumer " + consumer + " stands still."
		default:
			sentence = fmt.Sprintf("The check %q of %s fails.", check.Name, name)
		}
		found = append(found, cause{State: stateStopped, Sentence: capital(sentence), Detail: check.Reason})
	}
	if len(found) == 0 && ready.Status == service.StatusDraining {
		found = append(found, cause{State: stateWatch, Sentence: capital(name) + " is shutting down."})
	}
	return found
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
