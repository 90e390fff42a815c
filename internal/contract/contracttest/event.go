// Package contracttest makes events of the contract for tests.
package contracttest

import (
	"fmt"
	"path"
	"reflect"
	"testing"

	"github.com/google/uuid"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/event"
)

// Event returns the payload's event, with an id, as its producer would publish it.
func Event(t testing.TB, payload event.Ruled, version int64) event.Event {
	t.Helper()
	d, err := declarationOf(payload)
	if err != nil {
		t.Fatal(err)
	}
	e, err := made(d, payload, version)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Example returns the event of api/events/examples as its producer would publish it.
func Example(t testing.TB, d event.Declaration, version int64) event.Event {
	t.Helper()
	e, err := MakeExample(d, version)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// MakeExample is [Example] outside tests.
func MakeExample(d event.Declaration, version int64) (event.Event, error) {
	file := "events/examples/" + path.Base(d.DataSchema)
	data, err := api.Files.ReadFile(file)
	if err != nil {
		return event.Event{}, fmt.Errorf("event %s has no example: no file api/%s", d.Type, file)
	}
	payload, err := d.Payload(event.Event{Type: d.Type, Data: data})
	if err != nil {
		return event.Event{}, fmt.Errorf("the example of %s: %w", d.Type, err)
	}
	about, is := payload.(event.Ruled)
	if !is {
		return event.Event{}, fmt.Errorf("event %s: %T has no methods Check and About", d.Type, payload)
	}
	return made(d, about, version)
}

func made(d event.Declaration, payload event.Ruled, version int64) (event.Event, error) {
	e, err := event.NewOf(d, version, payload)
	e.ID = uuid.Must(uuid.NewV7()).String()
	return e, err
}

func declarationOf(payload event.Ruled) (event.Declaration, error) {
	for _, d := range contract.All() {
		if d.Name == reflect.TypeOf(payload).Name() {
			return d, nil
		}
	}
	return event.Declaration{}, fmt.Errorf("contract.All has no event with the payload %T", payload)
}
