package inbox_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func TestALongTopic(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 2 {
		msg := record(t, newEvent(), 5)
		msg.UUID = ""
		origin, _ := event.OriginFrom(msg.Context())
		origin.Topic = strings.Repeat("t", 249)
		msg.SetContext(event.WithOrigin(t.Context(), origin))
		require.NoError(t, b.Deliver(t, msg, effect))
	}
	require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter`))
}
