package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
)

// These values fit the schema and break a rule.
var refusedValues = map[string][]string{
	"user_id": {"00000000-0000-0000-0000-000000000000"},
	"email": {
		"a@localhost", `"a b"@c.org`, `"a"@c.org`, "a@[127.0.0.1]", "a@C.ORG", "a@c.123", "a@-c.org", "a@c..org",
		strings.Repeat("a", 65) + "@c.org", "ü@c.org", "a@ü.org",
	},
	"name": {
		" ", "\t", " Ada", "Ada ", "A\x1b[31mda", "Ada\r\nBcc: eve@example.org", "Ada\nEve", "A\u202eda", "\u200b",
		"A\u200bda", "A\u2066da", "\ufeffAda", "Ada\u2028Eve", "\u3164", "A\x7fda", "\u00a0", "A\ufffdda", "\ue000",
	},
	"mail_id": {
		"7", "mail 7", "01980A5C-5F10-7B1E-8C55-2F0A6B7C8D9E", "00000000-0000-0000-0000-000000000000", "\u202e", "a\r\nb",
	},
}

var timesRefused = []string{
	"0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1999-12-31T23:59:59Z", "2200-01-01T00:00:00Z",
	"9999-12-31T23:59:59Z",
}

func TestNoEventSaysWhatTheDomainRefuses(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, d := range contract.All() {
		var members map[string]any
		require.NoError(t, json.Unmarshal(example(t, d).Data, &members))
		for member := range members {
			refused := refusedValues[member]
			if strings.HasSuffix(member, "_at") {
				refused = timesRefused
			}
			for _, value := range refused {
				t.Run(d.Type+" "+member+" "+value, func(t *testing.T) {
					t.Parallel()
					var said map[string]any
					require.NoError(t, json.Unmarshal(example(t, d).Data, &said))
					said[member] = value
					e := example(t, d)
					e.Time = at
					var err error
					e.Data, err = json.Marshal(said)
					require.NoError(t, err)
					if payload, err := d.Payload(e); err == nil {
						e.Key, _ = payload.(domain.Event).About()
					}
					err = c.Validate(e)
					require.Error(t, err, "%s of %s: Check must refuse %q, as the domain's type does", member, d.Type, value)
					requireViolation(t, err, value)
				})
			}
		}
	}
}

func requireViolation(t *testing.T, err error, secret string) {
	t.Helper()
	var broken *event.ContractError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, event.CodeSchemaViolation, broken.Code, broken.Detail)
	if len(secret) > 2 {
		require.NotContains(t, err.Error(), secret, "the error repeats the payload")
	}
}
