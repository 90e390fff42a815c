package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
)

func TestAPositionThatWentBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.inbox(t)
	at := func() int64 {
		next, known, err := in.Position(t.Context(), "t", 1)
		require.NoError(t, err)
		require.True(t, known)
		return next
	}
	_, known, err := in.Position(t.Context(), "t", 1)
	require.NoError(t, err)
	require.False(t, known)
	require.ErrorIs(t, in.Advance(t.Context(), "t", 1, 0, 5), inbox.ErrWentBack, "it is not known any more")

	require.NoError(t, in.SetPosition(t.Context(), "t", 1, 7))
	require.NoError(t, in.SetPosition(t.Context(), "t", 2, 1))
	require.NoError(t, in.Advance(t.Context(), "t", 1, 7, 9))
	require.NoError(t, in.Advance(t.Context(), "t", 1, 7, 8), "an overlapping owner is behind")
	require.EqualValues(t, 9, at(), "and changes nothing")
	require.ErrorIs(t, in.Advance(t.Context(), "t", 1, 10, 11), inbox.ErrWentBack)
	require.EqualValues(t, 9, at())
}
