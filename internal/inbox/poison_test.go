package inbox_test

import (
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func TestPoisonIsKeptOnceAndAcknowledged(t *testing.T) {
	t.Parallel()
	shared := setup(t)
	for name, row := range map[string]struct {
		spoil func(*message.Message)
		code  string
	}{
		"nil value":        {func(m *message.Message) { m.Payload = nil }, "empty_value"},
		"no id":            {func(m *message.Message) { m.UUID = "" }, "missing_id"},
		"id not UTF-8":     {func(m *message.Message) { m.UUID = "\xff\x00" }, "invalid_id"},
		"no type":          {func(m *message.Message) { delete(m.Metadata, "ce_type") }, "missing_type"},
		"no key":           {func(m *message.Message) { delete(m.Metadata, "record_key") }, "missing_key"},
		"other key":        {func(m *message.Message) { m.Metadata["record_key"] = "x" }, "key_mismatch"},
		"garbage type":     {func(m *message.Message) { m.Metadata["ce_type"] = "\xff\x00" }, "invalid_header"},
		"time of no clock": {func(m *message.Message) { m.Metadata["ce_time"] = "yesterday" }, "invalid_time"},
		"structured mode": {func(m *message.Message) {
			m.UUID, m.Metadata = "", message.Metadata{"content-type": "application/cloudevents+json"}
		}, "structured_mode"},
		"version overflow": {func(m *message.Message) { m.Metadata["ce_aggregateversion"] = "9e99" }, "invalid_version"},
		"contract":         {func(m *message.Message) { m.Payload = []byte(`{"value":"forbidden"}`) }, "bad_contract"},
		"other type":       {func(m *message.Message) { m.Payload = []byte(`{"value":[]}`) }, "payload_mismatch"},
		"not JSON":         {func(m *message.Message) { m.Payload = []byte("\xff\x00{") }, "payload_mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			b := shared.again(t)
			b.Config.Validate = func(e event.Event) error {
				if string(e.Data) == `{"value":"forbidden"}` {
					return contractError{}
				}
				return nil
			}
			for range 2 {
				msg := record(t, newEvent(), 5)
				msg.UUID = "fixed"
				row.spoil(msg)
				require.NoError(t, b.Deliver(t, msg, effect))
			}
			require.Zero(t, b.Count(t, `select count(*) from ledger`))
			require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter`))
			require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter where class = 'permanent' and code = $1`, row.code))
		})
	}
}

type contractError struct{}

func (contractError) Error() string     { return "breaks the contract" }
func (contractError) ErrorCode() string { return "bad_contract" }

// An id of topic, partition and offset would be too long.
func TestARecordWithoutAnIDIsNamedByADigest(t *testing.T) {
	t.Parallel()
	for name, origin := range map[string]event.Origin{
		"from nowhere": {}, "from a long topic": {Topic: strings.Repeat("t", 249), Partition: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for range 2 {
				msg := message.NewMessage("", []byte("garbage"))
				msg.SetContext(event.WithOrigin(t.Context(), origin))
				require.NoError(t, b.Deliver(t, msg, effect))
			}
			require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter where event_id like 'sha256/%'`))
		})
	}
}
