package main

import (
	"fmt"
	"strconv"
	"strings"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// LetterFilter picks dead letters; what is given must all hold.
type LetterFilter struct {
	Consumer string  `help:"Of this consumer." env:"-"`
	Type     string  `help:"Events of this type." env:"-"`
	Key      string  `help:"Of this key." env:"-"`
	EventID  string  `help:"Of this event." name:"event-id" env:"-"`
	Code     string  `help:"With this stable reason, such as schema_violation." env:"-"`
	Error    string  `help:"Whose error contains this, in any case." env:"-" placeholder:"TEXT"`
	Since    instant `help:"Failed last at this time or later: RFC 3339, or how long ago, such as 1h or 2d." env:"-" placeholder:"TIME"`
	Until    instant `help:"Failed last before this time." env:"-" placeholder:"TIME"`
}

func (f *LetterFilter) check() error {
	return checkWindow(f.Since, f.Until)
}

func (f *LetterFilter) given() bool { return *f != LetterFilter{} }

// body is the filter as the API takes it.
func (f *LetterFilter) body(state string, ids []int64) adminapi.DeadLetterFilter {
	body := adminapi.DeadLetterFilter{
		Consumer: set(f.Consumer), Type: set(f.Type), Key: set(f.Key), EventId: set(f.EventID), Code: set(f.Code),
		Error: set(f.Error), Since: f.Since.given(), Until: f.Until.given(),
	}
	if state != "all" {
		body.State = set(state)
	}
	if len(ids) > 0 {
		body.Ids = &ids
	}
	return body
}

// letterID is how people write the id of a dead letter: ids are a service's own.
func letterID(service string, id int64) string { return service + "/" + strconv.FormatInt(id, 10) }

// pick is what a command is about: ids by service, or everything the filter says in all of them.
type pick struct {
	ids map[string][]int64
}

// parseIDs reads ids such as customer/17. A bare number will do where one service is asked.
func parseIDs(texts []string, services []*client.Service) (pick, error) {
	p := pick{ids: map[string][]int64{}}
	seen := map[string]bool{}
	for _, text := range texts {
		name, number, found := strings.Cut(text, "/")
		if !found {
			number = name
			if len(services) > 1 {
				return p, usage(text + ": ids are a service's own; write customer/" + text + " or notification/" + text +
					", or give --service")
			}
			name = services[0].Name
		}
		id, err := strconv.ParseInt(number, 10, 64)
		if err != nil || id < 1 || strconv.FormatInt(id, 10) != number {
			return p, usage(fmt.Sprintf("%q is no id of a dead letter; they look like customer/17", text))
		}
		if !knows(services, name) {
			return p, usage(fmt.Sprintf("%q: no service %q is asked", text, name))
		}
		if full := letterID(name, id); !seen[full] {
			seen[full] = true
			p.ids[name] = append(p.ids[name], id)
		}
	}
	return p, nil
}

func knows(services []*client.Service, name string) bool {
	for _, s := range services {
		if s.Name == name {
			return true
		}
	}
	return false
}

// of are the services that the ids are of; all where no id is given.
func (p pick) of(services []*client.Service) []*client.Service {
	if len(p.ids) == 0 {
		return services
	}
	var some []*client.Service
	for _, s := range services {
		if len(p.ids[s.Name]) > 0 {
			some = append(some, s)
		}
	}
	return some
}
