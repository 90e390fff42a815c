package tree_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// project is the path of the product's module; a rename changes it as it changes every import.
const project = "example.com/twinbox"

// ring is a part of the tree, and the parts that its packages and its tests may import beside themselves.
type ring struct {
	folders, knows, testsKnow []string
}

// rings are the table that README.md and CONTRIBUTING.md show. The linter says the same while one writes; here it holds
// for all modules at once, and for folders that no rule of the linter has a pattern for.
var rings = map[string]ring{
	"yours": {
		folders: []string{"internal", "cmd", "api"},
		knows:   []string{"engine", "frame", "ops", "migrations"}, testsKnow: []string{"dev"},
	},
	"tables": {folders: []string{"migrations"}, testsKnow: []string{"dev"}},
	"engine": {folders: []string{"engine"}, testsKnow: []string{"migrations", "dev"}},
	"frame": {
		folders: []string{"frame"},
		knows:   []string{"engine", "migrations"}, testsKnow: []string{"dev"},
	},
	"ops": {
		folders: []string{"ops"},
		knows:   []string{"engine", "frame", "api"}, testsKnow: []string{"migrations", "dev"},
	},
	"command": {
		folders: []string{"cmd/twinbox"},
		knows:   []string{"engine", "frame", "ops", "internal/services"}, testsKnow: []string{"internal", "api", "dev"},
	},
	"dev": {folders: []string{"dev"}, knows: []string{
		"internal", "api", "engine", "frame", "ops", "migrations",
		"examples",
	}},
	"examples": {
		folders: []string{"examples"},
		knows:   []string{"engine", "frame", "ops", "migrations"}, testsKnow: []string{"dev"},
	},
	"bench":  {folders: []string{"bench"}, knows: []string{"internal", "engine", "frame", "migrations", "dev"}},
	"deploy": {folders: []string{"deploy"}}, // the tests of its dashboards and alerts know what was recorded, and no code
}

func TestRingsKeepTheirSides(t *testing.T) {
	t.Parallel()
	seen := 0
	walkTree(t, root, func(path string) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		relative, err := filepath.Rel(root, path)
		require.NoError(t, err)
		file := filepath.ToSlash(relative)
		name, r := ringOf(file)
		require.NotEmpty(t, name, "%s lies in no ring", file)
		allowed := append(r.folders, r.knows...)
		if strings.HasSuffix(file, "_test.go") {
			allowed = append(allowed, r.testsKnow...)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if folder, ours := strings.CutPrefix(imported, project+"/"); ours {
				require.True(t, below(folder, allowed), "%s, of the ring %s, imports %s", file, name, folder)
				seen++
			}
		}
	})
	require.Greater(t, seen, 500)
}

// ringOf is the ring with the folder that says most about the file.
func ringOf(file string) (name string, found ring) {
	longest := ""
	for candidate, r := range rings {
		for _, folder := range r.folders {
			if below(file, []string{folder}) && len(folder) > len(longest) {
				longest, name, found = folder, candidate, r
			}
		}
	}
	return name, found
}

func below(path string, folders []string) bool {
	for _, folder := range folders {
		if path == folder || strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}
