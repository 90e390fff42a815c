package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsLeftBehind(t *testing.T) {
	t.Parallel()
	const listed = "m.org/a/engine/inbox.OnGap\nm.org/a/engine/inbox.OnGapOther\nm.org/a/frame/eventing.Instance.Run\n" +
		"m.org/a/frame/eventing.Instances\nm.org/a/x.T.f"
	require.Equal(t, []string{"internal/inbox.OnGapOther", "internal/service/eventing.Instances", "x.T.f"},
		leftBehind(listed, "m.org/a"))
	require.Empty(t, leftBehind("", "m.org/a"))
}

// A function that no program calls is found, and its name is that by which dead.go knows it.
func TestDeadCodeIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module m.org/a\n\ngo 1.26\n",
		"cmd/p/main.go":     "package main\n\nimport \"m.org/a/x\"\n\nfunc main() { x.Used() }\n",
		"x/x.go":            "package x\n\ntype T struct{}\n\nfunc Used() {}\n\nfunc (T) Forgotten() {}\n",
		"internal/inbox.go": "package engine\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, name := range []string{"tools.mod", "tools.sum"} {
		content, err := os.ReadFile(filepath.Join("../../..", name))
		require.NoError(t, err)
		own := strings.Replace(string(content), "module example.com/twinbox/tools", "module m.org/a/tools", 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(own), 0o600))
	}
	require.ErrorContains(t, testDead(t.Context(), dir, "m.org/a"), ": x.T.Forgotten")
}
