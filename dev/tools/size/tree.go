package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// ring is a part of the tree.
type ring struct {
	name    string
	folders []string
	goal    int
	product bool // part of the product
	ops     bool // may be left out of a clone
}

var rings = []ring{
	{name: "yours", folders: []string{"internal", "cmd", "api"}, goal: 2500, product: true},
	{name: "the engine", folders: []string{"engine"}, product: true},
	{name: "the frame", folders: []string{"frame", "migrations"}, product: true},
	{name: "the operations", folders: []string{"ops", "cmd/twinbox"}, product: true, ops: true},
	{name: "dev", folders: []string{"dev"}},
	{name: "bench", folders: []string{"bench"}},
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

// isInSmallest says whether a clone has it that leaves out what may be left out.
func isInSmallest(r ring) bool { return r.product && !r.ops }

// file is a source: no test, not generated.
type file struct {
	lines   int
	methods map[string]int // by the type's name
}

// tree holds the sources by their path from the root.
type tree map[string]file

func readTree(root string) (tree, error) {
	found := tree{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(parsed) {
			return err
		}
		found[filepath.ToSlash(relative)] = file{lines: linesOfCode(content), methods: methodsIn(parsed)}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read tree: %w", err)
	}
	return found, nil
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
func requirements(root string) (int, error) {
	content, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return 0, fmt.Errorf("read module file: %w", err)
	}
	own, count, inside := "", 0, false
	for line := range strings.Lines(string(content)) {
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
	return count, nil
}
