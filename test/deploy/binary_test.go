package deploy_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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

func TestDockerignore_LeavesTheBuildWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range letThrough(t) {
		copyInto(t, dir, name)
	}
	list := []string{"list", "-deps", "-f", `{{.ImportPath}} {{.EmbedFiles}}`, "./cmd/..."}
	for _, service := range load(t, added(t)).Services {
		if service.Build != nil {
			list = append(list, "./"+*service.Build.Args["PROGRAM"])
		}
	}
	require.Equal(t, goTool(t, root, list...), goTool(t, dir, list...))
}

// letThrough lists the exceptions in .dockerignore, whose first line is "*". Some may be missing.
func letThrough(t *testing.T) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(read(t, ".dockerignore")) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "!")
		if _, err := os.Stat(filepath.Join(root, name)); ok && err == nil {
			names = append(names, name)
		}
	}
	return names
}

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
