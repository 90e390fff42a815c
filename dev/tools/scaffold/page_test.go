package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/tools/parts"
)

func TestApply(t *testing.T) {
	t.Parallel()
	list := steps("Text.\n\n`b/made.txt`:\n```sql\none\n```\n\n`a.txt`:\n```diff\n a\n+b\n@@\n-y\n+z\n```\n")
	require.Equal(t, []step{
		{path: "b/made.txt", content: "one\n"}, {path: "a.txt", change: true, content: " a\n+b\n@@\n-y\n+z\n"},
	}, list)
	text := func(content string) parts.File { return parts.File{Content: []byte(content), Mode: 0o600} }
	tree := parts.Tree{"a.txt": text("a\nx\n\ny\n"), "b/made.txt": text("two\n")}
	require.ErrorContains(t, list[0].apply(tree), "otherwise than it is made:\ntwo")
	tree["b/made.txt"] = text("one\n")
	require.NoError(t, list[0].apply(tree))
	require.NoError(t, list[1].apply(tree))
	require.Equal(t, parts.Tree{"a.txt": text("a\nb\nx\n\nz\n"), "b/made.txt": text("one\n")}, tree)

	require.ErrorContains(t, list[1].apply(tree), "stand there 0 times")
	tree["a.txt"] = text("a\ny\na\ny\n")
	require.ErrorContains(t, list[1].apply(tree), "stand there 2 times")
	require.ErrorContains(t, list[1].apply(parts.Tree{}), "which nothing makes")
}
