package parts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strconv"
	"strings"
)

// names are what the files of each package declare for all of it. Tests of a folder are packages of their own, under
// the folder's path and the package's name: what they declare is seen by themselves alone.
type names map[string]map[string]bool

func namesOf(sources map[string]*ast.File) names {
	found := names{}
	for name, parsed := range sources {
		for _, of := range packagesOf(name, parsed) {
			if found[of] == nil {
				found[of] = map[string]bool{}
			}
			for declared := range parsed.Scope.Objects {
				found[of][declared] = true
			}
		}
	}
	return found
}

// parse reads a Go file; nil is none.
func parse(name string, file File) *ast.File {
	if !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata/") {
		return nil
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), name, file.Content, 0)
	if err != nil {
		return nil // the compiler says why
	}
	return parsed
}

// packagesOf are the packages that a file declares for: its folder's, or where it is a test the folder's tests.
func packagesOf(name string, parsed *ast.File) []string {
	folder := path.Dir(name)
	if !strings.HasSuffix(name, "_test.go") {
		return []string{folder, folder + " " + parsed.Name.Name}
	}
	return []string{folder + " " + parsed.Name.Name}
}

// minus are the names that are in n and not in left.
func (n names) minus(left names) names {
	gone := names{}
	for of, declared := range n {
		for name := range declared {
			if !left[of][name] {
				if gone[of] == nil {
					gone[of] = map[string]bool{}
				}
				gone[of][name] = true
			}
		}
	}
	return gone
}

// sources are the parsed Go files of a tree.
func (t Tree) sources() map[string]*ast.File {
	found := map[string]*ast.File{}
	for name, file := range t {
		if parsed := parse(name, file); parsed != nil {
			found[name] = parsed
		}
	}
	return found
}

// dropUsers removes the tests that use a name that is gone, and what these declared for other tests is gone as well.
func (t Tree) dropUsers(module string, before Tree) {
	declared, left := namesOf(before.sources()), t.sources()
	for files := -1; files != len(left); {
		files = len(left)
		gone := declared.minus(namesOf(left))
		for name, parsed := range left {
			if strings.HasSuffix(name, "_test.go") && uses(parsed, path.Dir(name), module, gone) {
				delete(left, name)
				delete(t, name)
			}
		}
	}
}

// uses says whether a test uses one of the names.
func uses(parsed *ast.File, folder, module string, gone names) bool {
	for _, identifier := range parsed.Unresolved {
		if gone[folder+" "+parsed.Name.Name][identifier.Name] {
			return true
		}
	}
	imported := map[string]string{}
	for _, spec := range parsed.Imports {
		of, _ := strconv.Unquote(spec.Path.Value)
		if below, ours := strings.CutPrefix(of, module+"/"); ours {
			called := path.Base(below)
			if spec.Name != nil {
				called = spec.Name.Name
			}
			imported[called] = below
		}
	}
	found := false
	ast.Inspect(parsed, func(n ast.Node) bool {
		if selector, is := n.(*ast.SelectorExpr); is {
			if x, is := selector.X.(*ast.Ident); is && x.Obj == nil && gone[imported[x.Name]][selector.Sel.Name] {
				found = true
			}
		}
		return !found
	})
	return found
}
