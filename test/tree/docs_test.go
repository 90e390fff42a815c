// Package tree_test keeps the written pages true: their links lead somewhere, and the commands they name exist.
package tree_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

func pages(t *testing.T) []string {
	t.Helper()
	var list []string
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root:
			return fs.SkipDir
		case filepath.Ext(path) == ".md":
			list = append(list, path)
		}
		return nil
	}))
	require.Contains(t, list, filepath.Join(root, "README.md"))
	return list
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)]*))?\)`)
	heading = regexp.MustCompile("(?m)^#+ (.+)$")
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(withoutCode(read(t, page)), -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			to := page
			if match[1] != "" {
				to = filepath.Join(filepath.Dir(page), match[1])
			}
			relative, err := filepath.Rel(root, to)
			require.NoError(t, err)
			requireExists(t, relative, "%s links to %s", page, match[1])
			if _, err := os.Stat(to); err == nil && filepath.Ext(to) == ".md" && match[2] != "" {
				require.Contains(t, anchors(t, to), match[2], "%s links to %s", page, match[0])
			}
		}
	}
}

// GitHub gives headings these names.
func anchors(t *testing.T, page string) (list []string) {
	t.Helper()
	for _, match := range heading.FindAllStringSubmatch(read(t, page), -1) {
		plain := noSlug.ReplaceAllString(strings.ToLower(match[1]), "")
		list = append(list, strings.ReplaceAll(plain, " ", "-"))
	}
	return list
}

var (
	lineLink    = regexp.MustCompile("\\[`([^`]+)`\\]\\(([^)#\\s]+)#L(\\d+)\\)")
	updateLines = flag.Bool("tree.lines", false, "write the numbers of the lines that pages link to")
)

//go:generate env CGO_ENABLED=0 go test . -run Lines -tree.lines

// A link to a line has this form: [`code`](file#L7).
func TestLinesOnPagesSayWhatTheirLinksShow(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		text := read(t, page)
		fresh := lineLink.ReplaceAllStringFunc(text, func(found string) string {
			match := lineLink.FindStringSubmatch(found)
			file, err := filepath.Rel(root, filepath.Join(filepath.Dir(page), match[2]))
			require.NoError(t, err)
			if _, err := os.Stat(filepath.Join(root, file)); err != nil && isOptional(t, file) {
				return found
			}
			lines := strings.Split(read(t, filepath.Join(root, file)), "\n")
			at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, match[1]) })
			require.GreaterOrEqual(t, at, 0, "%s: %s has no line with %s", page, match[2], match[1])
			return fmt.Sprintf("[`%s`](%s#L%d)", match[1], match[2], at+1)
		})
		if *updateLines {
			require.NoError(t, os.WriteFile(page, []byte(fresh), 0o600))
		} else {
			require.Equal(t, fresh, text, "run make generate")
		}
	}
}

func TestFencedFoldersExist(t *testing.T) {
	t.Parallel()
	_, list, found := strings.Cut(read(t, filepath.Join(root, "docs/building.md")), "\nset -- ")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\ngit ")
	for folder := range strings.FieldsSeq(strings.ReplaceAll(list, "\\", "")) {
		requireExists(t, folder)
	}
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// optional lists the patterns and folders that docs/building.md lets an owner delete.
func optional(t *testing.T) (patterns, folders []string) {
	t.Helper()
	_, section, _ := strings.Cut(read(t, filepath.Join(root, "docs/building.md")), "\n## Leave out what you do not need\n")
	section, _, _ = strings.Cut(section, "\n### ")
	for _, row := range tableRow.FindAllString(section, -1) {
		columns := strings.Split(row, "|")
		for _, column := range []int{1, len(columns) - 2} {
			for _, match := range codeSpan.FindAllStringSubmatch(columns[column], -1) {
				patterns = append(patterns, match[1])
				if column == 1 {
					folders = append(folders, match[1])
				}
			}
		}
	}
	return patterns, folders
}

func isOptional(t *testing.T, path string) bool {
	t.Helper()
	patterns, _ := optional(t)
	for ; path != "."; path = filepath.Dir(path) {
		if slices.ContainsFunc(patterns, func(pattern string) bool {
			matches, err := filepath.Match(pattern, path)
			require.NoError(t, err)
			return matches
		}) {
			return true
		}
	}
	return false
}

// requireExists accepts a missing path that its owner may delete.
func requireExists(t *testing.T, path string, msgAndArgs ...any) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, path)); err != nil && !isOptional(t, path) {
		require.NoError(t, err, msgAndArgs...)
	}
}

func isPruned(t *testing.T) bool {
	t.Helper()
	_, folders := optional(t)
	return slices.ContainsFunc(folders, func(folder string) bool {
		_, err := os.Stat(filepath.Join(root, folder))
		return err != nil
	})
}

var (
	target  = regexp.MustCompile(`(?m)^([a-z0-9-]+):.*?## (.+)$`)
	command = regexp.MustCompile("(?m)(?:`|^)make ([a-z][a-z0-9 -]*)")
	program = regexp.MustCompile(`(?:go|\(GO\)) run \./([a-z/-]+)`)
)

func targets(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, match := range target.FindAllStringSubmatch(read(t, filepath.Join(root, "Makefile")), -1) {
		found[match[1]] = match[2]
	}
	return found
}

func TestCommandsExist(t *testing.T) {
	t.Parallel()
	known := targets(t)
	for _, page := range pages(t) {
		if filepath.Base(page) == "CHANGELOG.md" { // names removed commands
			continue
		}
		text := read(t, page)
		for _, match := range command.FindAllStringSubmatch(text, -1) {
			for name := range strings.FieldsSeq(match[1]) {
				require.Contains(t, known, name, "%s names make %s", page, name)
			}
		}
		for _, match := range program.FindAllStringSubmatch(text+read(t, filepath.Join(root, "Makefile")), -1) {
			requireExists(t, match[1], "%s runs %s", page, match[1])
		}
	}
}

func TestMakefile_HelpListsEveryTarget(t *testing.T) {
	t.Parallel()
	text := read(t, filepath.Join(root, "Makefile"))
	var phony []string
	for _, line := range regexp.MustCompile(`(?m)^\.PHONY: ([a-z0-9 -]+)`).FindAllStringSubmatch(text, -1) {
		phony = append(phony, strings.Fields(line[1])...)
	}
	documented := targets(t)
	for _, name := range phony {
		require.Contains(t, documented, name)
	}
	require.Len(t, phony, len(documented))

	help := exec.CommandContext(t.Context(), "make")
	help.Dir = root
	output, err := help.Output()
	require.NoError(t, err)
	for name, what := range documented {
		require.Regexp(t, `(?m)^  make `+name+` +`+regexp.QuoteMeta(what)+`$`, string(output))
	}
}

// A job or a container may have no HOME; Go refuses to compile without one.
func TestMakefile_FindsHOME(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "probe.mk")
	require.NoError(t, os.WriteFile(file, []byte("probe:\n\t@echo $$HOME\n"), 0o600))
	for _, env := range [][]string{{}, {"HOME="}} {
		probe := exec.CommandContext(t.Context(), "make", "-f", "Makefile", "-f", file, "probe")
		probe.Dir, probe.Env = root, append(env, "PATH="+os.Getenv("PATH"))
		output, err := probe.Output()
		require.NoError(t, err)
		require.DirExists(t, strings.TrimSpace(string(output)))
	}
}

// A person must be able to run each part of the workflow by hand.
func TestWorkflowCallsTheScript(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][]string{
		"ci.yml":      {"bash .ci/run", "bash deploy/drill.sh # prints the containers' logs when it fails"},
		"nightly.yml": {"make ${{ matrix.campaign }}"},
	} {
		workflow := read(t, filepath.Join(root, ".github/workflows", file))
		var runs []string
		for _, run := range regexp.MustCompile(`(?m)^\s+(?:- )?run: (.+)$`).FindAllStringSubmatch(workflow, -1) {
			runs = append(runs, run[1])
		}
		require.Equal(t, want, runs)
		for _, uses := range regexp.MustCompile(`uses: (\S+)`).FindAllStringSubmatch(workflow, -1) {
			require.Regexp(t, `@[0-9a-f]{40}$`, uses[1], "a tag can be moved, a commit cannot")
		}
	}
}

// A block may name a file. A missing one is the reader's.
var goBlock = regexp.MustCompile("(?s)```go(?: ([^\n]+))?\n(.*?)```")

func TestGoOnPagesIsCompiled(t *testing.T) {
	t.Parallel()
	var sources []string
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root: // where a stack may run
			return fs.SkipDir
		case filepath.Ext(path) == ".go":
			sources = append(sources, unindented(read(t, path)))
		}
		return nil
	}))
	for _, page := range pages(t) {
		for _, block := range goBlock.FindAllStringSubmatch(read(t, page), -1) {
			isGuide := strings.HasPrefix(block[1], "internal/loyalty/") // test/guide compiles it
			if _, err := os.Stat(filepath.Join(root, block[1])); err != nil || isGuide {
				continue
			}
			found := slices.ContainsFunc(sources, func(source string) bool {
				return strings.Contains(source, unindented(block[2]))
			})
			require.True(t, found || isPruned(t), "%s shows code that is nowhere else:\n%s", page, block[2])
		}
	}
}

func unindented(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimLeft(line, "\t "))
	}
	return b.String()
}

var (
	testName = regexp.MustCompile("`(Test[A-Z]\\w+)(?:/(\\d+))?`")
	variable = regexp.MustCompile("`([A-Z]+_[A-Z_]+)`")
	tableRow = regexp.MustCompile(`(?m)^\| .*$`)
)

func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	known := testsOfTheTree(t)
	acceptance := ""
	if known["TestAcceptance"] { // test/e2e may be left out
		acceptance = read(t, filepath.Join(root, "test/e2e/acceptance_test.go"))
	}
	for _, page := range []string{"docs/engine.md", "docs/from-watermill.md", "docs/contract.md"} {
		if _, err := os.Stat(filepath.Join(root, page)); err != nil && isOptional(t, page) {
			continue
		}
		named := testName.FindAllStringSubmatch(read(t, filepath.Join(root, page)), -1)
		require.NotEmpty(t, named)
		for _, match := range named {
			require.True(t, known[match[1]] || isPruned(t), "%s names %s, which does not exist", page, match[1])
			if number := match[2]; number != "" && acceptance != "" {
				require.Equal(t, "TestAcceptance", match[1], page)
				require.Contains(t, acceptance, `{"`+number+" ", "%s names test %s of the contract", page, number)
			}
		}
	}
}

func TestTheContractNamesItsTestsAndVariables(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(filepath.Join(root, "docs/contract.md")); err != nil && isOptional(t, "docs/contract.md") {
		t.Skip("its services are left out")
	}
	page := read(t, filepath.Join(root, "docs/contract.md"))
	settings := read(t, filepath.Join(root, "docs/configuration.md"))
	for _, match := range variable.FindAllStringSubmatch(page, -1) {
		require.Contains(t, settings, "| `"+match[1]+"` |", "the contract names a variable that does not exist")
	}
	promises, _, found := strings.Cut(page, "## Settings that are asked for")
	require.True(t, found)
	rows := tableRow.FindAllString(promises, -1)
	require.Greater(t, len(rows), 30)
	for _, row := range rows {
		if !strings.HasPrefix(row, "| what is asked") && !strings.HasPrefix(row, "| number") {
			require.Regexp(t, testName, row, "a sentence without a test is a wish")
		}
	}
	for number := range 8 {
		require.Contains(t, promises, fmt.Sprintf("`TestAcceptance/%d`", number+1))
	}
}

// begins does not match [pgx.BeginFunc].
var begins = regexp.MustCompile(`\.BeginTx\(|(?i)(?:pool|conn)\.Begin\(`)

// CONTRIBUTING.md lists the files that begin a transaction without pgx.BeginFunc.
func TestTransactionsBeginInTheListedFiles(t *testing.T) {
	t.Parallel()
	page := read(t, filepath.Join(root, "CONTRIBUTING.md"))
	found := 0
	for _, folder := range []string{"cmd", "internal", "migrations"} {
		walkTree(t, filepath.Join(root, folder), func(path string) {
			if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || !begins.MatchString(read(t, path)) {
				return
			}
			file, err := filepath.Rel(root, path)
			require.NoError(t, err)
			require.Contains(t, page, "]("+filepath.ToSlash(file)+")", "%s begins a transaction", file)
			found++
		})
	}
	require.Equal(t, 2, found)
}
