package tree_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

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

func TestEachRefusalToConfirmHasItsParagraph(t *testing.T) {
	t.Parallel()
	source := read(t, filepath.Join(root, "internal/outbox/relay/lost.go"))
	page := read(t, filepath.Join(root, "docs/operations.md"))
	codes := regexp.MustCompile(`\n\tRefused\w+ += "([a-z_]+)"`).FindAllStringSubmatch(source, -1)
	require.Len(t, codes, 4)
	for _, code := range codes {
		require.Regexp(t, "(?m)^- `"+code[1]+"`: ", page)
	}
}

func TestEachCauseHasItsRow(t *testing.T) {
	t.Parallel()
	source := read(t, filepath.Join(root, "internal/service/cause.go"))
	page := read(t, filepath.Join(root, "docs/operations.md"))
	causes := regexp.MustCompile(`"([a-z]+(?:_[a-z]+)+)"`).FindAllStringSubmatch(source, -1)
	require.Greater(t, len(causes), 15)
	for _, cause := range causes {
		require.Contains(t, page, "\n| `"+cause[1]+"` | ")
	}
}
