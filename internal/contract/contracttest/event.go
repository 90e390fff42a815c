// Package contracttest makes events of the contract for tests.
package contracttest

import (
	"path"
	"testing"

	"github.com/google/uuid"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
)

// Event returns the event that tells of the payload, as its producer would have published it: with an id, at the
// version of its aggregate.
func Event(t testing.TB, payload domain.Event, version int64) event.Event {
	t.Helper()
	e, err := made(payload, version)
	if err != nil {
		t.Fatal(err)
	}
	e.ID = uuid.Must(uuid.NewV7()).String()
	return e
}

// Example is the event that api/events/examples tells of, as its producer would have published it.
func Example(t testing.TB, d event.Declaration, version int64) event.Event {
	t.Helper()
	data, err := api.Files.ReadFile("events/examples/" + path.Base(d.DataSchema))
	if err != nil {
		t.Fatal(err)
	}
	payload, err := d.Payload(event.Event{Type: d.Type, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return Event(t, payload.(domain.Event), version)
}

func made(payload domain.Event, version int64) (event.Event, error) {
	key, at := payload.About()
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
