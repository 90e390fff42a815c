package console

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/twinbox/frame/service"
	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

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
	"unknown": "",
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
		case v.cur.ready.Status == service.StatusDraining:
			found = append(found, cause{State: stateWatch, Sentence: "The service is shutting down.", Service: s.Name})
		case said.Code != "" && said.Code != service.CodeAllWell:
			found = append(found, causeOf(s.Name, said, f.at))
		case v.cur.ready.Status != service.StatusReady:
			found = append(found, unready(s.Name, v.cur.ready))
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
	if said.Since != nil && !said.Since.IsZero() {
		details = append(details, "for "+age(new(now.Sub(*said.Since).Seconds())))
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
