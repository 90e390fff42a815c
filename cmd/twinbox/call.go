package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/ops/admin/client"
)

// CallCommand is "twinbox call".
type CallCommand struct {
	Change

	Operation string   `arg:"" optional:"" help:"Its operationId in api/admin.yaml. Without one the command lists them."`
	Values    []string `arg:"" optional:"" name:"name=value" help:"Parameters, and members of the body, as JSON or as text; filter.code=x is a member of a member."`
}

// Run changes one service alone, and asks all.
func (c *CallCommand) Run(ctx context.Context, to *streams, services []*client.Service) error {
	operations, err := readOperations()
	if err != nil {
		return err
	}
	if c.Operation == "" {
		to.show(view{columns: "OPERATION id, REQUEST request, SUMMARY summary"}.table(operations, to.wide()))
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
		_, err := listing{question: method + " " + place}.show(ctx, to, services, asked)
		return err
	}
	if len(services) > 1 { // the same id may be another thing in each
		return errSeveral
	}
	asked["by"], asked["reason"], asked["dry_run"] = c.By, c.Reason, c.DryRun
	what, request := effect{done: "Changed", would: "change", thing: "thing"}, client.Post(place, asked)
	if operations[i].isSet("lines") {
		return c.inTurn(ctx, to, services, what, func(*client.Service) client.Request { return request })
	}
	return whoHasIt(ctx, to, services, what, request)
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
			schema, _ := described.object("requestBody").object("content").object("application/json")["schema"].(map[string]any)
			operations = append(operations, item{
				"id": described["operationId"], "request": strings.ToUpper(method) + " " + place, "summary": described["summary"],
				"changes": schemas.object(path.Base(item(schema).text("$ref"))).member("properties.dry_run"),
				"lines":   strings.HasSuffix(described.object("responses").object("200").text("$ref"), "/Lines"),
			})
		}
	}
	operations = slices.DeleteFunc(operations, func(o item) bool { return o["id"] == nil }) // parameters of a path
	slices.SortFunc(operations, func(a, b item) int { return strings.Compare(a.text("id"), b.text("id")) })
	return operations, nil
}

func (c *CallCommand) read(place string) (asked item, filled string, err error) {
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
			if members[outer] == nil {
				members[outer] = map[string]any{}
			}
			members, name = members.object(outer), inner
		}
		if json.Unmarshal([]byte(text), new(any)) == nil {
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
