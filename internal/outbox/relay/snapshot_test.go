package relay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func mustParse(t require.TestingT, text string) snapshot {
	var s snapshot
	err := s.ScanText(pgtype.Text{String: text, Valid: true})
	require.NoError(t, err)
	return s
}

func TestSnapshotSees(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "10:20:12,15")
	for xid, want := range map[uint64]bool{
		9: true, 10: true, 12: false, 13: true, 15: false, 19: true, 20: false, 21: false,
	} {
		require.Equal(t, want, s.sees(xid), "%d", xid)
	}
	require.True(t, mustParse(t, "3:3:").sees(2))
	for _, bad := range []string{"", "3:3", "3:3:3:", "a:3:", "3:b:", "3:5:x", "::"} {
		err := new(snapshot).ScanText(pgtype.Text{String: bad, Valid: true})
		require.Error(t, err, bad)
	}
}

func TestLandmarksStart(t *testing.T) {
	t.Parallel()
	m := landmarks{[]uint64{0, 10, 20, 30}, []int64{0, 100, 200, 300}}
	for _, c := range []struct {
		done, now string
		want      int64
	}{
		{"31:31:", "40:40:", 300},
		{"30:30:", "40:40:", 200},
		{"15:31:15", "15:40:15", 300}, // still running: not looked for
		{"15:31:15", "40:40:", 100},   // ended: its rows are above 100
		{"10:31:10", "40:40:", 0},
		{"15:31:15,25", "15:40:15", 200},
	} {
		require.Equal(t, c.want, m.start(mustParse(t, c.done), mustParse(t, c.now)), "%s %s", c.done, c.now)
	}
}

func TestKeptLandmarksAnswerAllQuestions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := landmarks{[]uint64{0}, []int64{0}}
		newest := uint64(0)
		for i := range rapid.IntRange(0, 30).Draw(t, "marks") {
			newest += rapid.Uint64Range(1, 9).Draw(t, "xid")
			all.xids = append(all.xids, newest)
			all.heads = append(all.heads, all.heads[i]+rapid.Int64Range(0, 9).Draw(t, "head"))
		}
		xmax := newest + rapid.Uint64Range(1, 5).Draw(t, "after")
		running := rapid.SliceOfNDistinct(rapid.Uint64Range(3, max(3, xmax-1)), 0, 12, rapid.ID).Draw(t, "running")
		slices.Sort(running)
		text := make([]string, len(running))
		for i, xid := range running {
			text[i] = fmt.Sprint(xid)
		}
		xmin := xmax
		if len(running) > 0 {
			xmin = running[0]
		}
		done := mustParse(t, fmt.Sprintf("%d:%d:%s", xmin, xmax, strings.Join(text, ",")))

		kept := all.kept(done)
		require.LessOrEqual(t, len(kept.xids), len(running)+1, "all marks are older than done")
		require.NotEmpty(t, kept.xids, "an empty array would be null in the row")
		for _, xid := range append(running, xmin, xmax, xmax+1, xmax+100) {
			require.Equal(t, all.below(xid), kept.below(xid), "below %d", xid)
		}
	})
}
