package contract_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
)

// Whatever the business accepts must pass the schema: otherwise a customer could sign up by the rules and be refused
// by the contract.
func TestWhatTheDomainAcceptsFitsTheSchema(t *testing.T) {
	t.Parallel()
	c := load(t)
	locals := rapid.StringMatching("[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]{1,66}")
	hosts := rapid.StringMatching(`([a-zA-Z0-9-]{1,20}\.){1,4}[a-z0-9-]{1,6}`)
	rapid.Check(t, func(t *rapid.T) {
		email, err := domain.ParseEmail(locals.Draw(t, "local") + "@" + hosts.Draw(t, "host"))
		if err != nil {
			t.Skip("not an address")
		}
		name, err := domain.ParseName(rapid.StringN(1, 210, -1).Draw(t, "name"))
		if err != nil {
			t.Skip("not a name")
		}
		when := time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanos")).UTC()
		_, event := domain.Register(userID, email, name, when)
		_, data, err := contract.Encode(event)
		require.NoError(t, err)
		wire := registered(string(data))
		require.NoError(t, c.Validate(wire), string(data))
		read, err := contract.Decode[domain.UserRegistered](wire)
		require.NoError(t, err)
		require.Equal(t, event, read)
	})
}

// FuzzValidate looks for payloads that crash the check, and for ones that pass it and do not survive being read and
// written.
func FuzzValidate(f *testing.F) {
	c := load(f)
	for _, d := range contract.All() {
		f.Add(d.Type, example(f, d).Data)
	}
	for _, data := range []string{
		"", "null", `{"a":1,"a":2}`, "[[[[", "\xff", `"\ud800"`, `{"name":"\u0000"}`, "1e400000",
	} {
		f.Add(contract.UserRegistered.Type, []byte(data))
	}
	f.Fuzz(func(t *testing.T, eventType string, data []byte) {
		event := cloudevent.Event{Type: eventType, Subject: userID, Data: data}
		if err := c.Validate(event); err != nil {
			var broken *contract.Error
			require.ErrorAs(t, err, &broken)
			return
		}
		definition, written, err := codecs[eventType](event)
		require.NoError(t, err, "fits the schema, not the struct")
		require.Equal(t, eventType, definition.Type)
		event.Data = written
		require.NoError(t, c.Validate(event), "its own writing does not pass")
		_, again, err := codecs[eventType](event)
		require.NoError(t, err)
		require.Equal(t, string(written), string(again))
	})
}

func BenchmarkValidate(b *testing.B) {
	c := load(b)
	event := example(b, contract.UserRegistered)
	b.SetBytes(int64(len(event.Data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Validate(event); err != nil {
			b.Fatal(err)
		}
	}
}
