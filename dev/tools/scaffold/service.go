package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ofService is what the templates of a service are filled with.
type ofService struct {
	*project
	Name, Port string
}

// service makes one that consumes nothing yet: the other two commands are for that.
func (p *project) service(name, port string) (*work, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if _, made := p.tree[appOf(name)]; !made {
		if err := p.free(name, port); err != nil {
			return nil, err
		}
	}
	w := &work{tree: p.tree, values: ofService{p, name, port}, next: "go test ./internal/" + name +
		"; then make new-consumer SERVICE=" + name + " EVENT=..., and git commit"}
	for _, file := range []struct{ name, from string }{
		{"internal/" + name + "/config.go", "config.go.tmpl"},
		{appOf(name), "app.go.tmpl"},
		{"internal/" + name + "/app_test.go", "app_test.go.tmpl"},
		{"cmd/" + name + "/main.go", "main.go.tmpl"},
	} {
		w.create(file.name, file.from)
	}
	w.importing(markService.file, p.Module+"/internal/"+name)
	w.insert(markService, "listed")
	w.insert(markSource, "source")
	w.insert(markLint, "lint")
	w.insert(markJobs, "jobs")
	w.insert(markContainer, "containers")
	w.insert(markImage, "image")
	w.insert(markDatabase, "database")
	w.insert(markScrape, "scrape") // part: observability
	return w.done("the name " + name)
}

// free refuses a name and a port that something in the tree has.
func (p *project) free(name, port string) error {
	if name == p.Project {
		return fmt.Errorf("%q is the project's own name", name)
	}
	for _, taken := range []struct{ pattern, by string }{
		{`(?m)^  ` + name + `(-\w+)?:$`, "a container of " + compose},
		{`(?m)^\t*Source` + upperFirst(name) + `\b`, "a source of " + definitions},
		{`create role ` + p.Roles + `_` + name + `\b`, "a role of deploy/postgres/init.sql"},
	} {
		file := taken.by[strings.LastIndex(taken.by, " ")+1:]
		if regexp.MustCompile(taken.pattern).Match(p.tree[file].Content) {
			return fmt.Errorf("the name %s is taken: it is %s", name, taken.by)
		}
	}
	for file := range p.tree {
		for _, folder := range []string{"internal/", "cmd/", "migrations/"} {
			if strings.HasPrefix(file, folder+name+"/") {
				return fmt.Errorf("the name %s is taken: there is %s", name, folder+name)
			}
		}
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 1024 || number > 65535 || strconv.Itoa(number) != port {
		return fmt.Errorf("%q is no port for a service: 1024 to 65535", port)
	}
	for _, file := range p.ports() {
		for _, found := range regexp.MustCompile(`(?:127\.0\.0\.1:|:-)(\d{4,5})\b`).FindAllSubmatch(
			p.tree[file].Content, -1) {
			if string(found[1]) == port {
				return fmt.Errorf("the port %s is taken, by a line of %s", port, file)
			}
		}
	}
	return nil
}

// ports are the files that say on which ports the system listens on one machine.
func (p *project) ports() []string {
	list := []string{compose, "dev/cmd/devstack/run.go"}
	for name := range p.tree {
		if strings.HasSuffix(name, "/config.go") &&
			(strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "examples/")) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}
