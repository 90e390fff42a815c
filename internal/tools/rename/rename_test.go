package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

func TestReplace(t *testing.T) {
	t.Parallel()
	for before, after := range map[string]string{
		`module m.org/a`:                        `module new.org/b/c`,
		"import \"m.org/a\"\n":                  "import \"new.org/b/c\"\n",
		`import "m.org/a/internal/x"`:           `import "new.org/b/c/internal/x"`,
		`pkg: m.org/a/internal/x$`:              `pkg: new.org/b/c/internal/x$`,
		`(m.org/a.T).Close`:                     `(new.org/b/c.T).Close`,
		`-X=m.org/a/x.V=1`:                      `-X=new.org/b/c/x.V=1`,
		`m.org/a m.org/a m.org/a`:               `new.org/b/c new.org/b/c new.org/b/c`,
		`https://m.org/a/events/x.json`:         `https://m.org/a/events/x.json`,
		`m.org/ab m.org/a-b m.org/a_b xm.org/a`: `m.org/ab m.org/a-b m.org/a_b xm.org/a`,
		`sub.m.org/a mxorg/a`:                   `sub.m.org/a mxorg/a`,
		"m.org/a\x00":                           "m.org/a\x00",
	} {
		require.Equal(t, after, string(replace([]byte(before), "m.org/a", "new.org/b/c")))
	}
}

func TestRename_RefusesWhatIsNoPath(t *testing.T) {
	t.Parallel()
	for _, module := range []string{
		"", "/a", "a/", "a//b", "https://github.com/a/b", "github.com/a b", "GitHub.com/a", "a/../b", "./a", "a/b.", "a\n",
	} {
		_, err := rename(t.TempDir(), module)
		require.ErrorContains(t, err, "not a module path", module)
	}
	_, err := rename(t.TempDir(), "github.com/a/b")
	require.ErrorContains(t, err, "read module")
}

// Only what holds the path is written, and stays what else it was: a program stays one, and what is no text is left.
func TestRename_WritesOnlyWhatChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "// about m.org/a\nmodule m.org/a\n\ngo 1.26\n", "run.sh": "go run m.org/a/cmd\n", "README.md": "a\n",
		"logo": "\x00m.org/a", "bin/old": "m.org/a", "doc/a.md": "m.org/a",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700))
	}
	changed, err := rename(dir, "new.org/b")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		filepath.Join(dir, "go.mod"), filepath.Join(dir, "run.sh"), filepath.Join(dir, "doc", "a.md"),
	}, changed)
	for name, want := range map[string]string{
		"go.mod": "// about new.org/b\nmodule new.org/b\n\ngo 1.26\n", "run.sh": "go run new.org/b/cmd\n",
		"logo": "\x00m.org/a", "bin/old": "m.org/a", "README.md": "a\n",
	} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(content), name)
	}
	info, err := os.Stat(filepath.Join(dir, "run.sh"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("go 1.26\n"), 0o600))
	_, err = rename(dir, "new.org/c")
	require.ErrorContains(t, err, "no module line")
}

// The whole tree is copied and renamed. That every import then parses and no old path is left is what a full build
// would need a minute to say; the packages built stand for the rest.
func TestRename_TheTree(t *testing.T) {
	t.Parallel()
	dir := copyTree(t)
	old, err := currentModule(dir)
	require.NoError(t, err)
	const module = "github.com/acme/shop.v2"

	changed, err := rename(dir, module)
	require.NoError(t, err)
	require.NotEmpty(t, changed)
	for _, name := range []string{"go.mod", "tools.mod", "golangci-lint.mod", ".golangci.yml"} {
		require.Contains(t, changed, filepath.Join(dir, name))
	}
	imports := 0
	walkGo(t, dir, func(path string) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			require.False(t, strings.HasPrefix(spec.Path.Value, `"`+old), "%s imports %s", path, spec.Path.Value)
			if strings.HasPrefix(spec.Path.Value, `"`+module+"/") {
				imports++
			}
		}
	})
	require.Greater(t, imports, 50)

	// Every import of every package and test leads somewhere, and what has no other modules below it compiles.
	goTool(t, dir, "list", "-deps", "-test", "./...")
	goTool(t, dir, "build", "./internal/domain", "./internal/fault", "./internal/tools/rename")

	again, err := rename(dir, module)
	require.NoError(t, err)
	require.Empty(t, again, "the second time there is nothing left to do")
}

func goTool(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = dir
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
}

func copyTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, strings.TrimPrefix(path, root))
		switch {
		case entry.IsDir() && skipped[entry.Name()]:
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o644)
	}))
	return dir
}

func walkGo(t *testing.T, dir string, visit func(path string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			visit(path)
		}
		return err
	}))
}
