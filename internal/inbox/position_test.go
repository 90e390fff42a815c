package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPositionThatWentBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.Inbox(t)
	at := func() int64 {
		next, known, err := in.Position(t.Context(), "t", 1)
		require.NoError(t, err)
		require.True(t, known)
		return next
	}
	_, known, err := in.Position(t.Context(), "t", 1)
	require.NoError(t, err)
	require.False(t, known)
	advance := func(from, next int64) bool {
		kept, err := in.Advance(t.Context(), "t", 1, from, next)
		require.NoError(t, err)
		return kept
	}
	require.False(t, advance(0, 5), "it is not known any more")

	require.NoError(t, in.SetPosition(t.Context(), "t", 1, 7))
	require.NoError(t, in.SetPosition(t.Context(), "t", 2, 1))
	require.True(t, advance(7, 9))
	require.True(t, advance(7, 8), "an overlapping owner is behind")
	require.EqualValues(t, 9, at(), "and changes nothing")
	require.False(t, advance(10, 11))
	require.EqualValues(t, 9, at())
}
