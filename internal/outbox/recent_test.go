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

// A held row that was taken in an earlier session, whose answer could not be recorded, is forgotten and not sent again.
func TestAHeldRowThatWasTakenIsNotSentAgain(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	l.follow(refuseKeys(&permanentError{"not now"}, "k"))
	added := commit(t, o, pool, event("k"), event("k"))
	first := startRelay(t, testRelayConfig(t, pool, l))
	awaitParked(t, pool, 2)
	first.stop()
	l.follow(nil)

	second, err := NewRelay(testRelayConfig(t, pool, l))
	require.NoError(t, err)
	took := records("k")
	took[0].id = uuid.MustParse(added[0].ID)
	second.recent.add(&took[0])
	require.NoError(t, Release(t.Context(), pool, testTopic, "k"))
	startRelayOf(t, second)
	awaitCaughtUp(t, pool)
	wire, _ := l.snapshot()
	require.Equal(t, []entry{{topic: testTopic, key: "k", id: added[1].ID, version: 2}}, wire)
}
