package contracttest

import (
	"testing"

	"github.com/google/uuid"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
)

// Event returns the event that tells of the payload, as its producer would have published it: with an id, at the
// version of its aggregate.
func Event(t testing.TB, payload domain.Event, version int64) cloudevent.Event {
	t.Helper()
	event, err := made(payload, version)
	if err != nil {
		t.Fatal(err)
	}
	event.ID = uuid.Must(uuid.NewV7()).String()
	return event
}

func made(payload domain.Event, version int64) (cloudevent.Event, error) {
	key, at := payload.About(), payload.HappenedAt()
	switch p := payload.(type) {
	case domain.UserRegistered:
		return contract.UserRegistered.New(key, version, at, p)
	case domain.UserRenamed:
		return contract.UserRenamed.New(key, version, at, p)
	case domain.EmailVerified:
		return contract.EmailVerified.New(key, version, at, p)
	case domain.VerificationEmailSent:
		return contract.VerificationEmailSent.New(key, version, at, p)
	}
	panic("no definition")
}
