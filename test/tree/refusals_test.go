package tree_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/operations.md explains each refusal of the relay, each that an operator confirms, each cause of a wait, and
// each code of a dead letter.
func TestEachCodeHasItsParagraph(t *testing.T) {
	t.Parallel()
	const deadLetters = "\\| [^|\n]*`" // several codes may share a row
	page := read(t, filepath.Join(root, "docs/operations.md"))
	for _, of := range []struct {
		file, code, before, after string
		least                     int
	}{
		{"internal/outbox/relay/check.go", `, '([a-z_]+)',\n`, "- `", "`: ", 11},
		{"internal/outbox/relay/lost.go", `\n\tRefused\w+ += "([a-z_]+)"`, "- `", "`: ", 4},
		{"internal/service/cause.go", `"([a-z]+(?:_[a-z]+)+)"`, "\\| `", "` \\| ", 16},
		{"internal/event/decode.go", ` Code = "([a-z_]+)"`, deadLetters, "`", 13},
		{"internal/event/checker.go", ` Code = "([a-z_]+)"`, deadLetters, "`", 4},
		{"internal/inbox/outcome.go", `\n\tCode\w+ += "([a-z_]+)"`, deadLetters, "`", 12},
	} {
		codes := regexp.MustCompile(of.code).FindAllStringSubmatch(read(t, filepath.Join(root, of.file)), -1)
		require.GreaterOrEqual(t, len(codes), of.least, of.file)
		for _, code := range codes {
			require.Regexp(t, "\n"+of.before+code[1]+of.after, page, of.file)
		}
	}
}
