package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"

	"example.com/twinbox/dev/tools/parts"
)

// form is one shape in which an event is on its way from the use case to a handler.
type form struct {
	name string
	of   string // the folder of the package that declares it; none where it is not declared here
}

// forms are all of them, in their order, with the default edge; the handler gets the first one again. The list is
// written by hand: a test sees that each is still there, and one that is added is added here.
var forms = []form{
	{name: "the business's struct"},
	{name: "Event", of: "internal/event/cloudevent"},
	{name: "row of the outbox"},
	{name: "Record", of: "internal/outbox/window"},
	{name: "record", of: "internal/kafka/producer"}, // part: batch
	{name: "record on the wire"},
	{name: "sarama.ConsumerMessage"},
	{name: "entry", of: "internal/kafka/consumer"}, // part: batch
	{name: "message.Message"},
	{name: "item", of: "internal/inbox"},
	{name: "entry", of: "internal/inbox"},
}

func (f form) String() string {
	if f.of == "" {
		return f.name
	}
	return path.Base(f.of) + "." + f.name
}

// formsIn counts the forms, and fails where a type is gone that is said to be one.
func formsIn(sources parts.Tree) (figure, error) {
	var names []string
	for _, f := range forms {
		if f.of != "" && !declares(sources, f) {
			return figure{}, fmt.Errorf("count forms of an event: there is no %s any more; mend the list in forms.go", f)
		}
		names = append(names, f.String())
	}
	return figure{
		name: "forms of one event on its way", value: len(forms), goal: 11, remark: strings.Join(names, ", "),
	}, nil
}

func declares(sources parts.Tree, f form) bool {
	for name, source := range sources {
		if path.Dir(name) != f.of || !strings.HasSuffix(name, ".go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, source.Content, parser.SkipObjectResolution)
		if err == nil && slices.ContainsFunc(parsed.Decls, func(d ast.Decl) bool {
			types, is := d.(*ast.GenDecl)
			return is && types.Tok == token.TYPE && slices.ContainsFunc(types.Specs, func(s ast.Spec) bool {
				return s.(*ast.TypeSpec).Name.Name == f.name
			})
		}) {
			return true
		}
	}
	return false
}
