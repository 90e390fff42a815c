package relay

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox/window"
)

var first = window.Page{Records: []window.Record{{Position: 1}}, More: true}

// pagesOf is a source of n pages of one record each, positions 1 to n.
func pagesOf(n int64, fail error) func(_ context.Context, above int64) (window.Page, error) {
	return func(_ context.Context, above int64) (window.Page, error) {
		if above == n {
			return window.Page{}, fail
		}
		return window.Page{Records: []window.Record{{Position: above + 1}}, More: true}, nil
	}
}

func TestPagesComeInOrderAndEnd(t *testing.T) {
	t.Parallel()
	for _, fail := range []error{nil, errors.New("cut off")} {
		pages, stop := readAhead(t.Context(), first, pagesOf(5, fail))
		for want := int64(1); want < 5; want++ {
			p := <-pages
			require.NoError(t, p.err)
			require.Equal(t, want+1, p.Last())
		}
		p := <-pages
		require.Empty(t, p.Records)
		require.ErrorIs(t, p.err, fail, "only behind what was read before")
		stop()
	}
}

// However large the window is, no more than a few pages of it are in memory.
func TestReadingAheadIsBounded(t *testing.T) {
	t.Parallel()
	reads := make(chan int64, 100)
	read := pagesOf(1_000_000, nil)
	_, stop := readAhead(t.Context(), first, func(ctx context.Context, above int64) (window.Page, error) {
		reads <- above
		return read(ctx, above)
	})
	for range pagesAhead + 1 { // one of them waits in the reader's hand
		<-reads
	}
	stop()
	close(reads)
	require.Empty(t, reads)
}
