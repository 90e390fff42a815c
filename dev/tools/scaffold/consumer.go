package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// ofConsumer is what the templates of a consumer are filled with.
type ofConsumer struct {
	*project
	Service, Event    string
	Topic, TopicConst string
	Base              string // what the consumer's names in Go begin with: users, for usersConsumer and usersEvents
	Mux               string // the call that makes the handlers; empty: they need something
	Member            string // the consumer's last word
}

// consumer makes the handler of an event, and where the service reads its topic for the first time the consumer.
func (p *project) consumer(service, given string) (*work, error) {
	event, err := eventOf(given)
	if err != nil {
		return nil, err
	}
	if err := p.checkService(service); err != nil {
		return nil, err
	}
	topic, _, found := p.definition(event)
	if !found {
		return nil, fmt.Errorf("there is no event %s in %s; make new-event makes one", event, definitions)
	}
	base := lowerFirst(strings.TrimPrefix(topic, "Topic"))
	values := ofConsumer{
		project: p, Service: service, Event: event, Topic: p.topics()[topic], TopicConst: topic, Base: base,
		Mux: base + "Events()", Member: kebab(upperFirst(base)),
	}
	w := &work{tree: p.tree, next: "go test ./internal/" + service + "; then let the handler do what yours does"}
	table := snake(event)
	handler := "internal/" + service + "/" + table + ".go"
	_, made := p.tree[handler]
	files := p.filesOf(service)
	if at, _ := p.holding(files, "inbox.Handle(mux, contract."+event+","); at != "" && !made {
		return nil, fmt.Errorf("%s handles %s already, in %s", service, event, at)
	}
	list, text := p.holding(files, markHandlers(handler, topic).comment())
	if list != "" {
		values.Mux = muxOf(text, markHandlers(list, topic))
		w.values = values
	} else if reads, _ := p.holding(files, "Topic: contract."+topic+","); reads != "" {
		missing := markHandlers(reads, topic)
		return nil, fmt.Errorf("%s reads %s, but none of its files has a marker: add a line %q %s, and run this again",
			service, topic, missing.comment(), missing.where)
	} else {
		list, w.values = "internal/"+service+"/"+snake(upperFirst(base))+"_consumer.go", values
		w.create(list, "consumer.go.tmpl")
		w.insert(markWritten(service), "copytopic")
		w.insert(markConsumers(service), "consume")
		w.insert(markOperation, "receives")
		for _, file := range []string{markWritten(service).file, markConsumers(service).file} {
			w.importing(file, p.Module+"/internal/contract")
		}
	}
	w.create(handler, "handler.go.tmpl")
	w.create(strings.TrimSuffix(handler, ".go")+"_test.go", "handler_test.go.tmpl")
	if !made {
		w.create(p.nextMigration(service, table), "table.sql.tmpl")
	}
	w.insert(markHandlers(list, topic), "handle")
	w.insert(markTables(service), "tablename")
	return w.done("the handler of " + event)
}

// muxOf is how a test calls the function in which the marker stands; empty: it has a receiver or takes something.
func muxOf(text string, at marker) string {
	begins := regexp.MustCompile(`(?m)^func (\w+)\(\) \*inbox\.Mux \{$|^func `)
	calls := begins.FindAllStringSubmatch(text[:at.find(text)], -1)
	if len(calls) == 0 || calls[len(calls)-1][1] == "" {
		return ""
	}
	return calls[len(calls)-1][1] + "()"
}

// nextMigration is the file that follows a service's last one.
func (p *project) nextMigration(service, what string) string {
	folder, last := "migrations/"+service+"/", 0
	for name := range p.tree {
		below, is := strings.CutPrefix(name, folder)
		number, _, _ := strings.Cut(below, "_")
		if n, err := strconv.Atoi(number); is && err == nil {
			last = max(last, n)
		}
	}
	return fmt.Sprintf("%s%04d_%s.sql", folder, last+1, what)
}
