package producer

import (
	"log/slog"
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
)

// A round is counted whether or not a record needs the count: a busy process passes this number within weeks.
func TestRecordsWithoutAKeyAreSpreadForEver(t *testing.T) {
	t.Parallel()
	cfg := kafka.Config{Brokers: []string{"127.0.0.1:1"}}.WithDefaults()
	s := newSender(cfg, new(atomic.Pointer[map[string]int32]), t.Context(), slog.New(slog.DiscardHandler))
	s.round = math.MaxInt32
	partitions, used := []int32{0, 1, 2}, map[int32]int{}
	for range 6 {
		used[s.partitionOf(&record{}, partitions)]++
		s.round++
	}
	require.Equal(t, map[int32]int{0: 2, 1: 2, 2: 2}, used)
}
