package tree_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unclear has words that make a reader read a sentence twice, each with one that does not.
var unclear = map[*regexp.Regexp]string{
	regexp.MustCompile(`\b([Ss]ays|told)\b`):                     "returns, reports, means",
	regexp.MustCompile(`\b[Cc]omes? to\b`):                       "becomes",
	regexp.MustCompile(`\b[Tt]akes? up (an?|the)\b`):             "replays, resumes",
	regexp.MustCompile(`\bsurroundings\b`):                       "name the thing",
	regexp.MustCompile(`\b[Ii]n vain\b`):                         "without an effect",
	regexp.MustCompile(`\b[Mm]eanwhile\b`):                       "until then, during",
	regexp.MustCompile(`\bbeside\b`):                             "next to, with",
	regexp.MustCompile(`\b[Ss]tands\b`):                          "is, lies",
	regexp.MustCompile(`\b[Gg]oes on\b`):                         "continues",
	regexp.MustCompile(`\b[Aa]t once\b`):                         "immediately, together",
	regexp.MustCompile(`\b[Bb]y itself\b`):                       "automatically, alone",
	regexp.MustCompile(`\b[Pp]ut aside\b`):                       "stored, held",
	regexp.MustCompile(`\b([Ii]t|which) is no ([a-km-z]|l[^o])`): "is not a",
}

// No comment, page or help of a command or a setting uses them.
func TestWordsAreClear(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for _, page := range pages(t) {
		texts[page] = withoutCode(read(t, page))
	}
	walkTree(t, root, func(path string) {
		if filepath.Ext(path) == ".go" {
			texts[path] = wordsOf(t, path)
		}
	})
	for path, text := range texts {
		text = strings.Join(strings.Fields(text), " ")
		for word, better := range unclear {
			for _, at := range word.FindAllStringIndex(text, -1) {
				t.Errorf("%s: %q: write %s", path, text[max(0, at[0]-40):min(len(text), at[1]+20)], better)
			}
		}
	}
}

// wordsOf returns the comments, and the tags that people read.
func wordsOf(t *testing.T, path string) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	if ast.IsGenerated(file) {
		return ""
	}
	var text strings.Builder
	for _, group := range file.Comments {
		text.WriteString(group.Text())
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if field, is := n.(*ast.Field); is && field.Tag != nil {
			tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
			text.WriteString(tag.Get("help") + "\n" + tag.Get("doc") + "\n")
		}
		return true
	})
	return text.String()
}

var code = regexp.MustCompile("(?s)```.*?```|`[^`]*`")

func withoutCode(page string) string { return code.ReplaceAllString(page, "") }
