package outbox

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestRecentIsForgottenWhenRecorded(t *testing.T) {
	t.Parallel()
	var m recent
	require.Nil(t, m.set())
	list := records("a", "b", "c")
	for i := range list {
		m.add(&list[i])
	}
	m.forget(func(x receipt) bool { return x.position <= 2 })
	require.Equal(t, map[receipt]bool{{position: 3}: true}, m.set())
}

// While the database was away it was set back, and gave the position of an event that was taken to another one. The
// process remembers the position, but it is not the same event.
func TestAPositionWithAnotherIDIsNotWhatWasTaken(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	added := commit(t, o, pool, event("a"), event("b"))
	r, err := NewRelay(testRelayConfig(t, pool, l))
	require.NoError(t, err)
	took := records("a", "b")
	require.Equal(t, added[0].Position, took[0].position)
	r.recent.add(&took[0]) // with an id of zeros
	took[1].id = uuid.MustParse(added[1].ID)
	r.recent.add(&took[1])
	run := startRelayOf(t, r)
	awaitCaughtUp(t, pool)
	run.stop()
	wire, _ := l.snapshot()
	require.Equal(t, []entry{{topic: testTopic, key: "a", id: added[0].ID, version: 1}}, wire)
}
