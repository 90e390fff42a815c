package verify

import (
	"runtime"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// docs/operations.md has the figure: a million events are two million facts. It runs alone, before the parallel tests.
func TestAMillionEventsTakeSoMuchMemory(t *testing.T) {
	const facts = 200_000
	c := comparison{look: &look{}}
	before := heap()
	for range facts {
		c.add(fact{id: uuid.NewString(), key: uuid.NewString()})
	}
	bytes := float64(heap()-before) / facts
	runtime.KeepAlive(c)
	t.Logf("%.0f bytes a fact, %.0f MB a million events", bytes, 2*bytes)
	require.InDelta(t, 200, bytes, 50)
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
