package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"slices"
	"strings"

	"example.com/twinbox/dev/tools/parts"
)

// ring is a part of the tree.
type ring struct {
	name    string
	folders []string
	goal    int
	product bool // part of the product
}

var rings = []ring{
	{name: "yours", folders: []string{"internal", "cmd", "api"}, goal: 2500, product: true},
	{name: "the engine", folders: []string{"engine"}, product: true},
	{name: "the frame", folders: []string{"frame", "migrations"}, product: true},
	{name: "the operations", folders: []string{"ops", "cmd/twinbox"}, product: true}, // part: ops
	{name: "dev", folders: []string{"dev"}},
	{name: "bench", folders: []string{"bench"}},                        // part: bench
	{name: "the cached inbox", folders: []string{"internal/inbox/kv"}}, // part: kv
	{name: "the examples", folders: []string{"examples"}},              // part: examples
}

// ringOf is the ring with the folder that says most about the file.
func ringOf(name string) (found ring) {
	longest := ""
	for _, r := range rings {
		for _, folder := range r.folders {
			if strings.HasPrefix(name, folder+"/") && len(folder) > len(longest) {
				longest, found = folder, r
			}
		}
	}
	return found
}

func isProduct(r ring) bool { return r.product }

// file is a source: no test, not generated.
type file struct {
	lines   int
	methods map[string]int // by the type's name
}

// tree holds the sources by their path from the root.
type tree map[string]file

// measure reads the Go files of the tree that are neither tests nor generated.
func measure(sources parts.Tree) (tree, error) {
	found := tree{}
	for name, source := range sources {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || isHidden(name) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, source.Content,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read tree: %w", err)
		}
		if !ast.IsGenerated(parsed) {
			found[name] = file{lines: linesOfCode(source.Content), methods: methodsIn(parsed)}
		}
	}
	return found, nil
}

// isHidden says whether Go leaves the file out.
func isHidden(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(folder string) bool {
		return strings.HasPrefix(folder, ".") || folder == "testdata"
	})
}

// linesOfCode counts the lines with something that the compiler reads: neither blank nor comments alone.
func linesOfCode(content []byte) int {
	source := token.NewFileSet().AddFile("", -1, len(content))
	var s scanner.Scanner
	s.Init(source, content, nil, 0)
	count, last := 0, 0
	for {
		pos, kind, literal := s.Scan()
		switch {
		case kind == token.EOF:
			return count
		case kind == token.SEMICOLON && literal == "\n": // the end of a line, put in by the scanner
			continue
		}
		first := source.Line(pos)
		end := first + strings.Count(literal, "\n")
		count += end - max(first, last+1) + 1
		last = end
	}
}

func methodsIn(parsed *ast.File) map[string]int {
	count := map[string]int{}
	for _, declaration := range parsed.Decls {
		f, is := declaration.(*ast.FuncDecl)
		if !is || f.Recv == nil {
			continue
		}
		receiver := f.Recv.List[0].Type
		if pointer, is := receiver.(*ast.StarExpr); is {
			receiver = pointer.X
		}
		switch generic := receiver.(type) {
		case *ast.IndexExpr:
			receiver = generic.X
		case *ast.IndexListExpr:
			receiver = generic.X
		}
		if name, is := receiver.(*ast.Ident); is {
			count[name.Name]++
		}
	}
	return count
}

// lines are those of the rings that are picked.
func (t tree) lines(picked func(ring) bool) int {
	total := 0
	for name, f := range t {
		if picked(ringOf(name)) {
			total += f.lines
		}
	}
	return total
}

// linkedIn counts the lines of the packages that the services are built of: the product without what only the
// operators' command and other tools link.
func linkedIn(ctx context.Context, root string, sources parts.Tree) (figure, error) {
	all, err := measure(sources)
	if err != nil {
		return figure{}, err
	}
	module, err := sources.Module()
	if err != nil {
		return figure{}, err
	}
	listed, err := output(ctx, root, "go", "list", "-deps", "./cmd/...")
	if err != nil {
		return figure{}, err
	}
	folders := map[string]bool{}
	for name := range strings.FieldsSeq(listed) {
		folder, ours := strings.CutPrefix(name, module+"/")
		folders[folder] = ours
	}
	lines := 0
	for name, f := range all {
		if folders[path.Dir(name)] {
			lines += f.lines
		}
	}
	return figure{name: "lines that the services link", value: lines}, nil
}

// largestType is the product's type with the most methods.
func (t tree) largestType() (name string, methods int) {
	count := map[string]int{}
	for name, f := range t {
		if !ringOf(name).product {
			continue
		}
		for receiver, n := range f.methods {
			count[path.Dir(name)+"."+receiver] += n
		}
	}
	for candidate, n := range count {
		if n > methods || n == methods && candidate < name {
			name, methods = candidate, n
		}
	}
	return name, methods
}

// requirements counts the modules of others that the product's go.mod names without "// indirect".
func requirements(moduleFile []byte) int {
	own, count, inside := "", 0, false
	for line := range strings.Lines(string(moduleFile)) {
		line = strings.TrimSpace(line)
		required, single := strings.CutPrefix(line, "require ")
		switch {
		case strings.HasPrefix(line, "module "):
			own = strings.TrimPrefix(line, "module ")
		case required == "(":
			inside = true
		case line == ")":
			inside = false
		case (inside || single) && line != "" && !strings.Contains(line, "// indirect") &&
			!strings.HasPrefix(required, own+"/"):
			count++
		}
	}
	return count
}
