package failure_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
)

func TestALongTextIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	exact := strings.Repeat("x", failure.MaxText)
	require.Equal(t, exact, failure.Brief(exact))
	require.Equal(t, exact+"... (1048576 bytes more)", failure.Brief(exact+strings.Repeat("y", 1<<20)))
	for shift := range 4 {
		cut := failure.Brief(strings.Repeat("x", shift) + strings.Repeat("ä€𝄞", failure.MaxText))
		require.True(t, utf8.ValidString(cut))
		require.LessOrEqual(t, len(cut), failure.MaxText+len("... (99999 bytes more)"))
	}
	require.Equal(t, "\uFFFDa\uFFFDb", failure.Cut("\x80\x81a\x00b", 10), "PostgreSQL stores no such bytes")
	require.Empty(t, failure.Brief(""))
}
