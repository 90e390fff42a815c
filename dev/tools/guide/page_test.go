package main

import (
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// The steps of the page fit the tree as it is. What they make is compiled and tested by make guide.
func TestTheStepsOfThePageApply(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs/building.md"))
	require.NoError(t, err)
	list := steps(string(page))
	require.GreaterOrEqual(t, len(list), 10)
	dir := t.TempDir()
	for _, s := range list {
		if s.change {
			content, err := os.ReadFile(filepath.Join(root, s.path))
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, s.path)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, s.path), content, 0o600))
		}
		require.NoError(t, s.apply(dir))
		made, err := os.ReadFile(filepath.Join(dir, s.path))
		require.NoError(t, err)
		if filepath.Ext(s.path) == ".go" {
			formatted, err := format.Source(made)
			require.NoError(t, err, s.path)
			require.Equal(t, string(formatted), string(made), s.path)
		}
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a.txt")
	list := steps("Text.\n\n`b/new.txt`:\n```sql\none\n```\n\n`a.txt`:\n```diff\n a\n+b\n@@\n-y\n+z\n```\n")
	require.Equal(t, []step{
		{path: "b/new.txt", content: "one\n"}, {path: "a.txt", change: true, content: " a\n+b\n@@\n-y\n+z\n"},
	}, list)
	require.ErrorContains(t, list[1].apply(dir), "change a.txt")

	require.NoError(t, os.WriteFile(file, []byte("a\nx\n\ny\n"), 0o600))
	require.NoError(t, list[0].apply(dir))
	require.NoError(t, list[1].apply(dir))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "a\nb\nx\n\nz\n", string(content))

	require.ErrorContains(t, list[0].apply(dir), "create b/new.txt")
	require.ErrorContains(t, list[1].apply(dir), "stand there 0 times")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("a\ny\n", 2)), 0o600))
	require.ErrorContains(t, list[1].apply(dir), "stand there 2 times")
}
