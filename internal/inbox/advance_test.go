package inbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/pgtest"
)

func TestTimePassesForDeadLetters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	box := inboxtest.NewBox(t, b.Pool, inbox.NewMux(), func(c *inbox.Config) { c.Accepts = acceptsTestType })
	event := inboxtest.NewEvent()
	event.Data = []byte(`{"value":1}`)
	before := box.RequireOutcome(t, inbox.Dead, event).DeadLetter
	pgtest.Advance(t, b.Pool, time.Hour)
	after := box.RequireOutcome(t, inbox.Duplicate, event).DeadLetter
	require.Equal(t, before.FailedAt.Add(-time.Hour), after.FailedAt)
	require.Equal(t, before.FirstFailedAt.Add(-time.Hour), after.FirstFailedAt)
}
