package consumer_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/test/kafkatest"
)

// What cannot be read is handed over as it lies on the log: each of its batches once, up to a megabyte.
func TestADamagedBatchIsKeptAsItLies(t *testing.T) {
	t.Parallel()
	long := "rotten apple" + strings.Repeat("x", 700_000)
	for name, damaged := range map[string][][]string{
		"one batch of one":       {{"rotten apple"}},
		"one batch of many":      {{"0", "rotten apple", "2"}},
		"one batch after others": {{"0"}, {"1"}, {"rotten apple", "3"}},
		"two batches":            {{"rotten apple 1", "rotten apple 2"}, {"rotten apple 3"}},
		"more than is kept":      {{long}, {long}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, brokers := kafkatest.Fake(t, kfake.ListenFn(rotten{"rotten apple"}.listen))
			topic := kafkatest.Topic(t, brokers, 1)
			for _, batch := range damaged {
				toPartition(t, brokers, topic, 0, batch...)
			}
			seen := make(chan cloudevent.Origin, 100)
			handle := func(_ context.Context, msgs []*message.Message) (int, error) {
				for _, msg := range msgs {
					if o, _ := cloudevent.OriginFrom(msg.Context()); o.Unreadable != nil {
						seen <- o
					}
				}
				return len(msgs), nil
			}
			consume(t, batches(brokers, kafkatest.Group(t)), topic, handle)
			gap := receive(t, seen)
			require.LessOrEqual(t, len(gap.Damaged), 1<<20)
			if name == "more than is kept" {
				require.Len(t, gap.Damaged, 1<<20)
				require.Greater(t, gap.DamagedSize, 1_400_000)
				return
			}
			require.Len(t, gap.Damaged, gap.DamagedSize)
			var values int
			for rest := gap.Damaged; len(rest) > 0; { // it is the format of the log, batch behind batch
				var batch kmsg.RecordBatch
				length := 12 + int(uint32(rest[8])<<24|uint32(rest[9])<<16|uint32(rest[10])<<8|uint32(rest[11]))
				require.NoError(t, batch.ReadFrom(rest[:length]))
				values += bytes.Count(batch.Records, []byte("ROTTEN APPLE"))
				rest = rest[length:]
			}
			require.Equal(t, strings.Count(strings.Join(flat(damaged), " "), "rotten apple"), values)
		})
	}
}

func flat(batches [][]string) (values []string) {
	for _, batch := range batches {
		values = append(values, batch...)
	}
	return values
}
