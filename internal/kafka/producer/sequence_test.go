package producer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
)

func TestSequencesEndBeforeTheyWrap(t *testing.T) {
	t.Parallel()
	tp := kafka.TopicPartition{Topic: "t"}
	ids := sequences{producer: 7, epoch: 32766, known: true, next: map[kafka.TopicPartition]int32{tp: maxSequence - 1}}
	ids.use(tp, 1)
	require.False(t, ids.stale)
	ids.use(tp, 1)
	require.True(t, ids.stale)
	ids.renew()
	require.EqualValues(t, 32767, ids.epoch)
	require.Zero(t, ids.next[tp])
	require.True(t, ids.known)
	ids.stale = true
	ids.renew()
	require.False(t, ids.known, "the epochs are used up: another producer id is needed")
}
