package tree_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// A refusal of the relay's names a code. docs/operations.md has a paragraph for each.
func TestEachRefusalOfTheRelayHasItsParagraph(t *testing.T) {
	t.Parallel()
	source := read(t, filepath.Join(root, "internal/outbox/relay/check.go"))
	page := read(t, filepath.Join(root, "docs/operations.md"))
	codes := regexp.MustCompile(`, '([a-z_]+)',\n`).FindAllStringSubmatch(source, -1)
	require.Greater(t, len(codes), 10)
	for _, code := range codes {
		require.Regexp(t, "(?m)^- `"+code[1]+"`: ", page)
	}
}
