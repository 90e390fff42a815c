package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/ops/admin/client"
)

type callCommand struct {
	Change

	Operation string   `arg:"" optional:"" help:"Its operationId in api/admin.yaml. Without one the command lists them."`
	Values    []string `arg:"" optional:"" name:"name=value" help:"Parameters, and members of the body, as JSON or as text; filter.code=x is a member of a member."`
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
	asked, place, err := c.read(place)
	if err != nil {
		return err
	}
	if !operations[i].isSet("changes") {
		to.JSON = true
		return listing{question: method + " " + place}.show(ctx, to, services, asked)
	}
	if len(services) > 1 { // the same id may be another thing in each
		return errSeveral
	}
	maps.Copy(asked, values(c.Change))
	c.post = place
	return c.inTurn(ctx, to, services, func(*client.Service) any { return asked })
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
			if described["operationId"] == nil { // the parameters of the path
				continue
			}
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

// read returns the body or the query, and the path with its parameters.
func (c *callCommand) read(place string) (asked item, filled string, err error) {
	asked = item{}
	for _, text := range c.Values {
		name, text, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, "", usage(printable(name) + ": write it as NAME=VALUE")
		}
		if part := "{" + name + "}"; strings.Contains(place, part) {
			place = strings.ReplaceAll(place, part, url.PathEscape(text))
			continue
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
	if strings.Contains(place, "{") {
		return nil, "", usage("a part of the path is missing: " + place)
	}
	return asked, place, nil
}
