package main

import (
	"fmt"
	"regexp"
	"strings"
)

// ofEvent is what the templates of an event are filled with.
type ofEvent struct {
	*project
	Name, Service     string
	Topic, TopicConst string // the topic, and the constant that names it
	Source            string // the constant of the producer's source
	At                string // the member with the time, in the form of Go: GrantedAt
	AtMember          string // and of JSON: granted_at
}

// event makes one about a user, with the time at which it happened: what else it says is the owner's to add, before it
// is published for the first time.
func (p *project) event(given, topic, service string) (*work, error) {
	name, err := eventOf(given)
	if err != nil {
		return nil, err
	}
	if err := p.checkService(service); err != nil {
		return nil, err
	}
	topic, constant, isNew, err := p.topic(topic, service)
	if err != nil {
		return nil, err
	}
	if _, made := p.tree["internal/domain/"+snake(name)+".go"]; !made && p.declared(name) {
		return nil, fmt.Errorf("the name %s is taken: internal/domain or internal/contract declares it", name)
	}
	verb := split(name)[len(split(name))-1]
	w := &work{tree: p.tree, values: ofEvent{
		p, name, service, topic, constant, "Source" + upperFirst(service), upperFirst(verb) + "At", verb + "_at",
	}, next: "go test ./internal/contract ./internal/domain; then write it where it happens, as docs/building.md does"}
	if p.first(definitions, `(?m)^\t(Source`+upperFirst(service)+`)\s+=`) == "" {
		return nil, fmt.Errorf("%s has no constant Source%s: write it beside the others", definitions, upperFirst(service))
	}
	file := kebab(name) + ".v1"
	for _, made := range []struct{ name, from string }{
		{"internal/domain/" + snake(name) + ".go", "event.go.tmpl"},
		{"internal/domain/" + snake(name) + "_test.go", "event_test.go.tmpl"},
		{"api/events/" + file + ".json", "schema.json.tmpl"},
		{"api/events/examples/" + file + ".json", "example.json.tmpl"},
		{"internal/contract/testdata/" + file + ".first.json", "first.json.tmpl"},
		{"internal/contract/testdata/" + file + ".newer.json", "newer.json.tmpl"},
	} {
		w.create(made.name, made.from)
	}
	if isNew {
		w.insert(markTopic, "topic")
		w.insert(markChannel, "channel")
		w.insert(markOperation, "publishes")
		w.insert(markWritten(service), "written")
		w.importing(markWritten(service).file, p.Module+"/internal/contract")
	}
	w.insert(markEvent, "definition")
	w.insert(markListed, "declaration")
	w.insert(markCase, "case")
	w.insert(markMeant, "meant")
	w.insert(markChannelMessage(topic), "channelmessage")
	w.insert(markMessage, "message")
	return w.done("the name " + name)
}

// topic is a topic that the service writes to, its constant, and whether there is none yet. Where the topics begin with
// the project's name, as those of a clone do, it does so as well.
func (p *project) topic(given, service string) (topic, constant string, isNew bool, err error) {
	known := p.topics()
	prefix := p.Project + "."
	for _, there := range known {
		if !strings.HasPrefix(there, p.Project+".") {
			prefix = ""
		}
	}
	topic = prefix + strings.TrimPrefix(given, prefix)
	for name, there := range known {
		if there == topic {
			constant = name
		}
	}
	if constant != "" {
		sources := regexp.MustCompile(`\b` + constant + `, Source(\w+),`).FindSubmatch(p.tree[definitions].Content)
		if sources != nil && string(sources[1]) != upperFirst(service) {
			return "", "", false, fmt.Errorf("the topic %s is %s's: each topic has one service that writes to it",
				topic, sources[1])
		}
		return topic, constant, false, nil
	}
	form := regexp.MustCompile(`^` + regexp.QuoteMeta(prefix+service) + `\.([a-z][a-z0-9]*(-[a-z0-9]+)*)\.v[1-9][0-9]?$`)
	match := form.FindStringSubmatch(topic)
	if match == nil {
		return "", "", false, fmt.Errorf("%q is no topic for events of %s: it would be named %s, such as %s", given, service,
			prefix+service+".<what they are about>.v1", prefix+service+".points.v1")
	}
	for word := range strings.SplitSeq(match[1], "-") {
		constant += upperFirst(word)
	}
	constant = "Topic" + constant
	if taken := known[constant]; taken != "" {
		return "", "", false, fmt.Errorf("the constant %s is taken, by the topic %s: call this one otherwise",
			constant, taken)
	}
	return topic, constant, true, nil
}

// declared says whether the domain or the contract has something of that name.
func (p *project) declared(name string) bool {
	declares := regexp.MustCompile(`(?m)^(?:type |func |var |const |\t)` + name + `\b`)
	for file, content := range p.tree {
		if (strings.HasPrefix(file, "internal/domain/") || strings.HasPrefix(file, "internal/contract/")) &&
			strings.HasSuffix(file, ".go") && declares.Match(content.Content) {
			return true
		}
	}
	return false
}
