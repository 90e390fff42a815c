package tree_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var decision = regexp.MustCompile(`^0*([1-9][0-9]*)-[a-z0-9-]+\.md$`)

func TestDecisionsAreNumbered(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(root, "docs/adr/*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	seen := map[string]string{}
	for _, path := range paths {
		name := filepath.Base(path)
		number := decision.FindStringSubmatch(name)
		require.NotNil(t, number, name)
		require.Empty(t, seen[number[1]], "the number of %s", name)
		seen[number[1]] = name
		title, _, _ := strings.Cut(read(t, path), "\n")
		require.True(t, strings.HasPrefix(title, "# "+number[1]+". "), "%s begins with %q", name, title)
	}
}
