package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/api"
)

func TestColumnsNameMembersOfTheDocument(t *testing.T) {
	t.Parallel()
	var document item
	require.NoError(t, json.Unmarshal(api.Admin, &document))
	resolve := func(schema item) item {
		if name, is := strings.CutPrefix(schema.text("$ref"), "#/components/schemas/"); is {
			return document.object("components").object("schemas").object(name)
		}
		return schema
	}
	member := func(schema item, path string) item {
		for name := range strings.SplitSeq(path, ".") {
			schema = resolve(resolve(schema).object("properties").object(name))
		}
		return schema
	}
	for name, l := range questions {
		method, path, _ := strings.Cut(l.request, " ")
		content := document.object("paths").object(path).object(strings.ToLower(method)).object("responses").object("200").
			object("content").object("application/json")
		require.NotEmpty(t, content, "%s: %s", name, l.request)
		for _, v := range l.views {
			row := resolve(content.object("schema"))
			if v.of != "" {
				row = resolve(member(row, v.of).object("items"))
			}
			for column := range strings.SplitSeq(v.columns, ",") {
				member := member(row, strings.Fields(column)[1])
				added := slices.Contains([]string{"service", "ref"}, strings.Fields(column)[1])
				require.True(t, added || len(member) > 0, "%s: %s", name, column)
			}
		}
	}
}
