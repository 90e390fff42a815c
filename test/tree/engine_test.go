package tree_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	promise  = regexp.MustCompile(`(?m)^## (internal/\S+)\n((?:[^\n|#]+\n)+)\n` +
		`\| invariant \| held by \|\n\|---\|---\|\n((?:\|.*\|\n)+)`)
	invariant = regexp.MustCompile("^\\| [^|]+ \\| (`Test\\w+`(, )?)+ \\|$")
)

// docs/engine.md covers these folders of internal, package by package.
var engine = []string{"outbox", "inbox", "kafka", "verify", "lease", "event", "failure", "audit", "fault"}

func TestEachPackageOfTheEngineHasAPromiseAndTestsThatHoldIt(t *testing.T) {
	t.Parallel()
	page := read(t, filepath.Join(root, "docs/engine.md"))
	promised, kept := map[string]bool{}, map[string]bool{}
	for _, section := range promise.FindAllStringSubmatch(page, -1) {
		promised[section[1]] = true
		for line := range strings.Lines(section[3]) {
			require.Regexp(t, invariant, strings.TrimSuffix(line, "\n"), section[1])
		}
	}
	for _, name := range engine {
		requireExists(t, "internal/"+name)
		for _, folder := range packagesBelow(t, "internal/"+name) {
			parent := strings.TrimSuffix(filepath.ToSlash(filepath.Dir(folder)), "/internal")
			require.True(t, promised[folder] || promised[parent] && strings.Contains(page, "`"+filepath.Base(folder)+"`"),
				"docs/engine.md has no section for %s", folder)
			kept[folder] = true
		}
	}
	for folder := range promised {
		require.True(t, kept[folder] || isOptional(t, folder), "docs/engine.md has a section for the missing %s", folder)
	}
}

var fileOfList = regexp.MustCompile(`(?m)^//\t\w+\.go +\w`)

func TestListsOfFilesAreComplete(t *testing.T) {
	t.Parallel()
	lists := 0
	walkTree(t, filepath.Join(root, "internal"), func(path string) {
		list := ""
		if filepath.Base(path) == "doc.go" {
			list = read(t, path)
		}
		if !fileOfList.MatchString(list) {
			return
		}
		lists++
		files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if name := filepath.Base(file); name != "doc.go" && !strings.HasSuffix(name, "_test.go") {
				require.Regexp(t, `\b`+regexp.QuoteMeta(name)+`\b`, list, path)
			}
		}
		for _, name := range regexp.MustCompile(`\b\w+\.go\b`).FindAllString(list, -1) {
			file, err := filepath.Rel(root, filepath.Join(filepath.Dir(path), name))
			require.NoError(t, err)
			requireExists(t, file, path)
		}
	})
	require.NotZero(t, lists)
}

func testsOfTheTree(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	walkTree(t, root, func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			for _, match := range testFunc.FindAllStringSubmatch(read(t, path), -1) {
				known[match[1]] = true
			}
		}
	})
	return known
}

func packagesBelow(t *testing.T, folder string) []string {
	t.Helper()
	var list []string
	seen := map[string]bool{}
	walkTree(t, filepath.Join(root, folder), func(path string) {
		name, err := filepath.Rel(root, filepath.Dir(path))
		require.NoError(t, err)
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !seen[name] {
			seen[name] = true
			list = append(list, filepath.ToSlash(name))
		}
	})
	return list
}

func walkTree(t *testing.T, from string, visit func(path string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case path == from && errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case entry.IsDir() && path != from && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.Type().IsRegular():
			visit(path)
		}
		return nil
	}))
}
