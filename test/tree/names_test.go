package tree_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFixedNames fails when a name is missing, empty or only an alias.
func TestFixedNames(t *testing.T) {
	t.Parallel()
	for name, holds := range map[string]string{
		"go.mod": "", "go.sum": "", "docker-compose.yml": "", "Makefile": "",
		"cmd/customer": "*.go", "cmd/notification": "*.go",
		"internal/inbox": "*.go", "internal/outbox": "*.go", "internal/domain": "*.go",
		"api": "*.yaml", "migrations": "*/*.sql",
	} {
		path := filepath.Join(root, name)
		if holds == "" {
			require.NotEmpty(t, read(t, path), name)
			continue
		}
		if _, err := os.Stat(path); err != nil && isOptional(t, name) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(path, holds))
		require.NoError(t, err)
		own := 0
		for _, file := range files {
			switch {
			case strings.HasSuffix(file, "_test.go"):
			case filepath.Ext(file) == ".go":
				own += functions(t, file)
			default:
				info, err := os.Stat(file)
				require.NoError(t, err)
				own += int(info.Size())
			}
		}
		require.Positive(t, own, "%s holds nothing of its own (%s)", name, holds)
	}
}

// A file of aliases has no function with a body.
func functions(t *testing.T, path string) (count int) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, declared := range file.Decls {
		if f, is := declared.(*ast.FuncDecl); is && f.Body != nil {
			count++
		}
	}
	return count
}
