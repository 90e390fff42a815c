// Package guide_test follows docs/building.md in a copy of the tree: it types the page's commands and files. It changes
// the service's name and port, because a reader's tree may have the page's.
package guide_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type block struct{ language, file, text string }

var fence = regexp.MustCompile("(?s)```(\\w+) ?([^\n]*)\n(.*?)```")

func TestThePageBuildsAService(t *testing.T) {
	t.Parallel()
	requireHello(t)
	page, err := os.ReadFile("../../docs/building.md")
	require.NoError(t, err)
	_, part, found := strings.Cut(string(page), "\n## 6. A service\n")
	require.True(t, found)
	part, _, _ = strings.Cut(part, "\n## ")
	part = strings.NewReplacer("loyalty", "guided", "Loyalty", "Guided", "8083", "8973").Replace(part)
	tree := copyOfTheTree(t)
	run(t, tree, "make new-service NAME=earlier PORT=8975")
	commit(t, tree)
	blocks := fence.FindAllStringSubmatch(part, -1)
	require.Len(t, blocks, 18, "two of commands, seven files and nine changes")
	for _, found := range blocks {
		follow(t, tree, block{found[1], found[2], found[3]})
	}
	run(t, tree, "go vet "+strings.Join(changed(t, tree), " "))
	run(t, tree, "go test ./dev/devstack -run TestRun") // starts what make run does
}

func TestNewServiceRefuses(t *testing.T) {
	t.Parallel()
	requireHello(t)
	tree := copyOfTheTree(t)
	for arguments, want := range map[string]string{
		"'' 8083":       "NAME= is no name: give lower-case letters and digits, a letter first.",
		"Loyalty 8083":  "NAME=Loyalty is no name: give lower-case letters and digits, a letter first.",
		"func 8083":     "NAME=func is a word of Go.",
		"string 8083":   "NAME=string is a word of Go.",
		"os 8083":       "NAME=os is taken: a service imports a package of that name.",
		"eventing 8083": "NAME=eventing is taken: a service imports a package of that name.",
		"kafka 8083":    "NAME=kafka is taken: there is internal/kafka.",
		"hello 8083":    "NAME=hello is taken: there is examples/hello.",
		"mailpit 8083":  "NAME=mailpit is taken: a container has it.",
		"smtp 8083":     "NAME=smtp is taken: make run has --smtp-addr.",
		"console 8083":  "NAME=console is taken: make run has --console-addr.",
		"guided ''":     "PORT= is no port: give a number from 1024 to 65534.",
		"guided 80":     "PORT=80 is no port: give a number from 1024 to 65534.",
		"guided 65535":  "PORT=65535 is no port: give a number from 1024 to 65534.",
		"guided 8129": "Port 8130 is taken: examples/hello/compose.yml has it. " +
			"A service takes PORT and the port behind it.",
	} {
		code, said := typed(t, tree, "sh dev/new-service.sh "+arguments)
		require.Equal(t, 2, code, said)
		require.Equal(t, "new-service: "+want+"\n", said)
		_, said = typed(t, tree, "git status --porcelain")
		require.Empty(t, said)
	}
	require.NoError(t, os.WriteFile(filepath.Join(tree, "note"), nil, 0o600))
	_, said := typed(t, tree, "sh dev/new-service.sh guided 8973")
	require.Equal(t, "new-service: git status lists changes: commit or stash them first.\n", said)
}

func follow(t *testing.T, tree string, b block) {
	t.Helper()
	file := filepath.Join(tree, b.file)
	switch b.language {
	case "sh":
		run(t, tree, b.text)
	case "diff":
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		before, after := sides(b.text)
		require.Equal(t, 1, strings.Count(string(content), before), "the place in %s:\n%s", b.file, before)
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(content), before, after, 1)), 0o600))
	default:
		require.NotEmpty(t, b.file, "a block of %s names its file", b.language)
		require.NoError(t, os.WriteFile(file, []byte(b.text), 0o600))
	}
}

// changed returns the packages with files that the page changed or made. The others compile as before.
func changed(t *testing.T, tree string) (packages []string) {
	t.Helper()
	_, files := typed(t, tree, "git status --porcelain -uall | cut -c4- | grep '[.]go$'")
	for file := range strings.FieldsSeq(files) {
		packages = append(packages, "./"+filepath.Dir(file))
	}
	require.NotEmpty(t, packages)
	slices.Sort(packages)
	return slices.Compact(packages)
}

func sides(diff string) (before, after string) {
	for line := range strings.Lines(diff) {
		if line[0] != '+' {
			before += line[1:]
		}
		if line[0] != '-' {
			after += line[1:]
		}
	}
	return before, after
}

func copyOfTheTree(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	run(t, root, `git ls-files -z | tar --null -cf - -T - | tar -xf - -C "`+tree+`"`)
	run(t, tree, "git init -q")
	commit(t, tree)
	return tree
}

func commit(t *testing.T, tree string) {
	t.Helper()
	run(t, tree, "git add -A && git -c user.name=guide -c user.email=guide@example.com commit -qm Guide")
}

// requireHello skips the test without examples: new-service copies from there.
func requireHello(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("../../examples/hello"); err != nil {
		t.Skip("examples is left out")
	}
}

func run(t *testing.T, dir, command string) {
	t.Helper()
	code, said := typed(t, dir, command)
	require.Zero(t, code, "%s\n%s", command, said)
}

// typed builds with one cache for all copies of the tree: their builds do not contain their folder.
func typed(t *testing.T, dir, command string) (code int, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", command)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	out, _ := cmd.CombinedOutput() // its code is the result
	return cmd.ProcessState.ExitCode(), string(out)
}
