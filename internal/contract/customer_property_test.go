package contract_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/contract/contracttest"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
)

func TestWhatTheDomainMakesKeepsTheContract(outer *testing.T) {
	outer.Parallel()
	c := load(outer)
	locals := rapid.StringMatching("[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]{1,66}")
	hosts := rapid.StringMatching(`([a-zA-Z0-9-]{1,20}\.){1,4}[a-z0-9-]{1,6}`)
	rapid.Check(outer, func(t *rapid.T) {
		email, err := domain.ParseEmail(locals.Draw(t, "local") + "@" + hosts.Draw(t, "host"))
		if err != nil {
			t.Skip("not an address")
		}
		name, err := domain.ParseName(rapid.StringN(1, 210, -1).Draw(t, "name"))
		if err != nil {
			t.Skip("not a name")
		}
		seconds := rapid.Int64Range(946684800, 7258118399).Draw(t, "seconds") // 2000 to 2199
		when := time.Unix(seconds, rapid.Int64Range(0, 1e9-1).Draw(t, "nanos")).UTC()
		user, registered := domain.Register(userID, email, name, when)
		_, renamed, err := user.Rename(name, 1, when)
		require.NoError(t, err)
		_, verified := user.VerifyEmail(when)
		for _, e := range []event.Ruled{
			registered, renamed, verified,
			domain.VerificationEmailSent{UserID: userID, MailID: uuid.Must(uuid.NewV7()).String(), SentAt: when},
		} {
			wire := contracttest.Event(outer, e, 1)
			require.NoError(t, c.Validate(wire), string(wire.Data))
			require.Equal(t, e, payloadOf(outer, wire))
		}
	})
}

// Other payloads may fit the schema.
func TestWhatTheDomainRefusesBreaksTheContract(t *testing.T) {
	t.Parallel()
	c := load(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringN(0, 12, -1),
			rapid.StringOf(rapid.RuneFrom([]rune("aB @.\"\t\r\n\x1b\u00a0\u200b\u200d\u202e\u2066\ufeff\u3164é"))),
		).Draw(t, "text")
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			t.Skip("no JSON text that any store here takes")
		}
		quoted, err := json.Marshal(text)
		require.NoError(t, err)
		name, nameErr := domain.ParseName(text)
		err = c.Validate(registered(payload("name", string(quoted))))
		require.Equal(t, nameErr == nil && string(name) == text, err == nil, "name %q: %v", text, err)
		email, emailErr := domain.ParseEmail(text + "@example.org")
		quoted, err = json.Marshal(text + "@example.org")
		require.NoError(t, err)
		err = c.Validate(registered(payload("email", string(quoted))))
		require.Equal(t, emailErr == nil && string(email) == text+"@example.org", err == nil, "email %q: %v", text, err)
	})
}

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
		e := event.Event{Type: eventType, Source: contract.SourceCustomer, Key: userID, Data: data}
		for _, d := range contract.All() {
			if d.Type == eventType {
				e.Source = d.Source
			}
		}
		if err := c.Validate(e); err != nil {
			var broken *event.ContractError
			require.ErrorAs(t, err, &broken)
			return
		}
		written := roundTrip(t, e)
		require.Equal(t, eventType, written.Type)
		e.Data = written.Data
		require.NoError(t, c.Validate(e), "its own writing does not pass")
		require.Equal(t, string(written.Data), string(roundTrip(t, e).Data))
	})
}
