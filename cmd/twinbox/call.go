package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/ops/admin/client"
)

type callCommand struct {
	Change

	Operation string   `arg:"" optional:"" help:"Its operationId in api/admin.yaml. Without one the command lists them."`
	Values    []string `arg:"" optional:"" name:"name=value" help:"Members of its body, as JSON or as text; filter.code=x is a member of a member."`
}

// Run changes one service alone, and asks all.
func (c *callCommand) Run(ctx context.Context, to *streams, services []*client.Service) error {
	operations, err := readOperations()
	if err != nil {
		return err
	}
	if c.Operation == "" {
		to.show(table{view{columns: "OPERATION id, REQUEST request, SUMMARY summary"}, operations})
		return nil
	}
	i := slices.IndexFunc(operations, func(o item) bool { return o["id"] == c.Operation })
	if i < 0 {
		return usage("there is no operation " + printable(c.Operation) + ": twinbox call lists them")
	}
	method, place, _ := strings.Cut(operations[i].text("request"), " ")
	asked, err := c.read()
	switch {
	case err != nil:
		return err
	case method == http.MethodGet && len(asked) > 0:
		return usage(c.Operation + " takes no values")
	case !operations[i].isSet("changes"):
		to.JSON = true
		return question{request: operations[i].text("request")}.show(ctx, to, services, asked)
	case len(services) > 1: // the same id may be another thing in each
		return errSeveral
	}
	maps.Copy(asked, values(c.Change))
	c.post = place
	return c.apply(ctx, to, services, func(*client.Service) any { return asked })
}

func readOperations() (operations []item, err error) {
	var document item
	if err := json.Unmarshal(api.Admin, &document); err != nil {
		return nil, fmt.Errorf("read admin.yaml: %w", err)
	}
	schemas := document.object("components").object("schemas")
	for place := range document.object("paths") {
		for method := range document.object("paths").object(place) {
			described := document.object("paths").object(place).object(method)
			content := described.object("requestBody").object("content").object("application/json")
			operations = append(operations, item{
				"id": described["operationId"], "request": strings.ToUpper(method) + " " + place, "summary": described["summary"],
				"changes": schemas.object(path.Base(content.object("schema").text("$ref"))).member("properties.dry_run"),
			})
		}
	}
	slices.SortFunc(operations, func(a, b item) int { return strings.Compare(a.text("id"), b.text("id")) })
	return operations, nil
}

// read returns the body.
func (c *callCommand) read() (asked item, err error) {
	asked = item{}
	for _, text := range c.Values {
		name, text, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, usage(printable(name) + ": write it as NAME=VALUE")
		}
		members := asked
		for outer, inner, deeper := strings.Cut(name, "."); deeper; outer, inner, deeper = strings.Cut(name, ".") {
			object, is := members[outer].(map[string]any)
			if !is {
				object = map[string]any{}
				members[outer] = object
			}
			members, name = object, inner
		}
		if json.Valid([]byte(text)) {
			members[name] = json.RawMessage(text)
		} else {
			members[name] = text
		}
	}
	return asked, nil
}
