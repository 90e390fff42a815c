package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"strings"
)

// face lists the exported declarations of the package in the folder, without comments and bodies: constants, variables
// and functions, then each type with what go doc shows below it. It is the same on every machine: built for linux,
// without tags.
func face(folder string) ([]string, error) {
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled, context.BuildTags = "linux", "amd64", false, nil
	found, err := context.ImportDir(folder, 0)
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(files, filepath.Join(folder, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read package: %w", err)
		}
		parsed = append(parsed, file)
	}
	all, err := doc.NewFromFiles(files, parsed, found.Name)
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	l := listing{files: files}
	l.values(all.Consts, all.Vars)
	l.funcs(all.Funcs)
	for _, t := range all.Types {
		l.add(t.Decl)
		l.values(t.Consts, t.Vars)
		l.funcs(t.Funcs, t.Methods)
	}
	return l.lines, l.err
}

type listing struct {
	files *token.FileSet
	lines []string
	err   error
}

func (l *listing) values(groups ...[]*doc.Value) {
	for _, group := range groups {
		for _, value := range group {
			l.add(value.Decl)
		}
	}
}

func (l *listing) funcs(groups ...[]*doc.Func) {
	for _, group := range groups {
		for _, f := range group {
			f.Decl.Body = nil
			l.add(f.Decl)
		}
	}
}

func (l *listing) add(declaration ast.Decl) {
	var text strings.Builder
	config := printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}
	if err := config.Fprint(&text, l.files, declaration); err != nil && l.err == nil {
		l.err = fmt.Errorf("print declaration: %w", err)
	}
	l.lines = append(l.lines, text.String())
}
