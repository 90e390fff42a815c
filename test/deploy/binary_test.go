package deploy_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goTool runs the go command and returns what it prints.
func goTool(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	var problems strings.Builder
	command.Stderr = &problems
	output, err := command.Output()
	require.NoError(t, err, problems.String())
	return string(output)
}

var program = regexp.MustCompile(`PROGRAM: ([a-z/-]+)`)

// The build context holds what the build needs: the packages of every program of a compose file, and everything they
// embed, are listed from a tree that has only what .dockerignore lets through.
func TestDockerignore_LeavesTheBuildWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range letThrough(t) {
		copyInto(t, dir, name)
	}
	list := []string{"list", "-deps", "-f", `{{.ImportPath}} {{.EmbedFiles}}`}
	files, err := filepath.Glob(filepath.Join(root, "*", "compose.yml"))
	require.NoError(t, err)
	for _, file := range append(files, filepath.Join(root, "docker-compose.yml")) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range program.FindAllStringSubmatch(string(content), -1) {
			list = append(list, "./"+match[1])
		}
	}
	require.Contains(t, list, "./cmd/customer")
	require.Equal(t, goTool(t, root, list...), goTool(t, dir, list...))
}

// letThrough lists the names that .dockerignore excepts from its first line, which is "*".
func letThrough(t *testing.T) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(read(t, ".dockerignore")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			names = append(names, name)
		}
	}
	return names
}

// copyInto copies a file or a folder as the build context would hold it: without tests and their data.
func copyInto(t *testing.T, dir, name string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
	require.NoError(t, filepath.WalkDir(filepath.Join(root, name), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		require.NoError(t, err)
		target := filepath.Join(dir, relative)
		switch {
		case entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case strings.HasSuffix(path, "_test.go"):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	}))
}
