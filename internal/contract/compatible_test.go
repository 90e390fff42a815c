package contract_test

import (
	"encoding/json"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
)

// meant is what the records in testdata say, to every build there will be.
var meant = map[string]any{
	contract.UserRegistered.Type: domain.UserRegistered{
		UserID: userID, Email: "ada@example.org", Name: "Ada", RegisteredAt: at,
	},
	contract.UserRenamed.Type: domain.UserRenamed{
		UserID: userID, Name: "Ada <b>Lovelace</b> Ζωή", RenamedAt: time.Date(2026, 11, 20, 9, 31, 0, 0, time.UTC),
	},
	contract.EmailVerified.Type: domain.EmailVerified{
		UserID: userID, Email: "ada@example.org", VerifiedAt: time.Date(2026, 11, 20, 9, 32, 0, 500_000_000, time.UTC),
	},
	contract.VerificationEmailSent.Type: domain.VerificationEmailSent{
		UserID: userID, MailID: "01980a5c-5f10-7b1e-8c55-2f0a6b7c8d9e",
		SentAt: time.Date(2026, 11, 20, 9, 30, 1, 250_000_000, time.UTC),
	},
}

// record reads a file of testdata as the event that a subscriber makes of such a record.
func record(t *testing.T, file string) event.Event {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	var kept struct {
		Key     string            `json:"key"`
		Headers map[string]string `json:"headers"`
		Value   json.RawMessage   `json:"value"`
	}
	require.NoError(t, json.Unmarshal(data, &kept))
	msg := message.NewMessage(kept.Headers[event.HeaderID], message.Payload(kept.Value))
	msg.Metadata = kept.Headers
	msg.Metadata[event.KeyMetadata] = kept.Key
	e, err := event.FromMessage(msg)
	require.NoError(t, err)
	return e
}

// The records in testdata are never changed. The first ones hold what has been in the event from its beginning, and of
// the envelope only what it cannot do without: they are on the topics, in dead letters and in outboxes for as long as
// those are kept. The newer ones hold what a later build of the same version may add. Consumers must read both: a
// change that fails this test needs a new version of the event.
func TestOlderAndNewerRecordsOfTheVersionAreRead(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, d := range contract.All() {
		name := path.Base(strings.TrimSuffix(d.DataSchema, ".json"))
		for _, age := range []string{"first", "newer"} {
			t.Run(name+" "+age, func(t *testing.T) {
				t.Parallel()
				e := record(t, name+"."+age+".json")
				require.Equal(t, d.Type, e.Type)
				require.NoError(t, c.Validate(e))
				read, err := d.Payload(e)
				require.NoError(t, err)
				require.Equal(t, meant[d.Type], read)
			})
		}
	}
}
