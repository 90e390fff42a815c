package parts

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// dropImporters removes the files that import one of the packages: what a service offers to its operators goes with the
// operations, and so do their tests.
func (t Tree) dropImporters(module string, gone map[string]bool) {
	for name, file := range t {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, file.Content, parser.ImportsOnly)
		if err != nil {
			continue // testdata of a tool; what is no Go imports nothing
		}
		for _, spec := range parsed.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if folder, ours := strings.CutPrefix(imported, module+"/"); ours && gone[folder] {
				delete(t, name)
			}
		}
	}
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// dropUnused removes the imports that a file of before used and nothing in it uses any more. An import is taken to have
// the name of its folder, or the one before a folder that is a version; one that has another name stays.
func (t Tree) dropUnused(name string, before File) error {
	content := t[name].Content
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, content, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("what is left of %s: %w", name, err)
	}
	whole, err := parser.ParseFile(token.NewFileSet(), name, before.Content, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	used, names := selected(whole), selected(parsed)
	drop := map[int]bool{}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		called := path.Base(imported)
		if majorVersion.MatchString(called) {
			called = path.Base(path.Dir(imported))
		}
		if spec.Name != nil {
			called = spec.Name.Name
		}
		if used[called] && !names[called] {
			drop[files.Position(spec.Pos()).Line] = true
		}
	}
	var kept strings.Builder
	number := 0
	for line := range strings.Lines(string(content)) {
		if number++; !drop[number] {
			kept.WriteString(line)
		}
	}
	t.set(name, kept.String())
	return nil
}

// selected are the names before a dot.
func selected(parsed *ast.File) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if selector, is := n.(*ast.SelectorExpr); is {
			if x, is := selector.X.(*ast.Ident); is {
				names[x.Name] = true
			}
		}
		return true
	})
	return names
}
