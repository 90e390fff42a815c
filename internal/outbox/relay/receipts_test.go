package relay

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox/operate"
)

func TestRecentIsForgottenWhenRecorded(t *testing.T) {
	t.Parallel()
	r := &Relay{}
	f := &flight{records: records("a", "b", "c", "d"), results: make([]error, 4), landed: make(chan struct{})}
	f.results[3] = errBehind
	close(f.landed)
	failed, err := r.collect(f)
	require.NoError(t, err)
	require.Equal(t, 1, failed)
	l := &leader{Relay: r, taken: outcome{pos: 2}}
	l.noteRecorded()
	require.Equal(t, []receipt{{position: 3}}, r.unrecorded)
}

// While the database was away it was set back, and gave the position of an event that was taken to another one. The
// process remembers the position, but it is not the same event.
func TestAPositionWithAnotherIDIsNotWhatWasTaken(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	added := commit(t, o, pool, event("a"), event("b"))
	r, err := New(testRelayConfig(t, pool, l))
	require.NoError(t, err)
	took := records("a", "b")
	require.Equal(t, added[0].Position, took[0].Position)
	r.unrecorded = append(r.unrecorded, receipt{took[0].Position, took[0].ID}) // with an id of zeros
	took[1].ID = uuid.MustParse(added[1].ID)
	r.unrecorded = append(r.unrecorded, receipt{took[1].Position, took[1].ID})
	run := startRelayOf(t, r)
	awaitCaughtUp(t, pool)
	run.stop()
	wire, _ := l.Snapshot()
	require.Equal(t, []entry{{Topic: testTopic, Key: "a", ID: added[0].ID, Version: 1}}, wire)
}

// A held row that was taken in an earlier session, whose answer could not be recorded, is forgotten and not sent again.
func TestAHeldRowThatWasTakenIsNotSentAgain(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	l.Follow(refuseKeys(&permanentError{Reason: "not now"}, "k"))
	added := commit(t, o, pool, event("k"), event("k"))
	first := startRelay(t, testRelayConfig(t, pool, l))
	awaitParked(t, pool, 2)
	first.stop()
	l.Follow(nil)

	second, err := New(testRelayConfig(t, pool, l))
	require.NoError(t, err)
	took := records("k")
	took[0].ID = uuid.MustParse(added[0].ID)
	second.unrecorded = append(second.unrecorded, receipt{took[0].Position, took[0].ID})
	require.NoError(t, operate.Release(t.Context(), pool, testTopic, "k"))
	startRelayOf(t, second)
	awaitCaughtUp(t, pool)
	wire, _ := l.Snapshot()
	require.Equal(t, []entry{{Topic: testTopic, Key: "k", ID: added[1].ID, Version: 2}}, wire)
}
