package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/test/testkit"
)

type oddity struct {
	name    string
	change  func(r *rawEvent)
	code    string // "": acknowledged
	applied bool
}

type rawEvent struct {
	key     []byte
	headers map[string]string
	more    []sarama.RecordHeader
	value   []byte
	codec   sarama.CompressionCodec
}

func healthy() *rawEvent {
	id := uuid.NewString()
	return &rawEvent{
		key: []byte(id),
		headers: map[string]string{
			"ce_id": uuid.NewString(), "ce_source": "/elsewhere", "ce_type": contract.UserRegistered.Type,
			"ce_specversion": "1.0", "ce_time": time.Now().UTC().Format(time.RFC3339Nano), "ce_subject": id,
			"ce_aggregateversion": "1", "content-type": "application/json",
		},
		value: payload(id, "Ada", ""),
	}
}

func payload(id, name, more string) []byte {
	const form = `{"user_id":"%s","email":"%s@example.org","name":"%s","registered_at":"2026-01-02T03:04:05Z"%s}`
	return fmt.Appendf(nil, form, id, id, name, more)
}

func (r *rawEvent) id() string { return r.headers["ce_subject"] }

// set changes one header; an empty value removes it.
func set(name, value string) func(*rawEvent) {
	return func(r *rawEvent) {
		r.headers[name] = value
		if value == "" {
			delete(r.headers, name)
		}
	}
}

func value(v string) func(*rawEvent) { return func(r *rawEvent) { r.value = []byte(v) } }
func with(more string) func(*rawEvent) {
	return func(r *rawEvent) { r.value = payload(r.id(), "Ada", more) }
}

func header(name, value string) func(*rawEvent) {
	return func(r *rawEvent) {
		r.more = append(r.more, sarama.RecordHeader{Key: []byte(name), Value: []byte(value)})
	}
}

func key(k []byte) func(*rawEvent) { return func(r *rawEvent) { r.key = k } }

func newer() func(*rawEvent) {
	return func(r *rawEvent) {
		r.headers["ce_dataschema"] += ".2"
		r.headers["content-type"] = "application/json; charset=utf-8"
		r.headers["ce_tenant"] = "eu-1"
		r.value = payload(r.id(), "Ada",
			`,"consent":{"given":true},"Name":"another","points":9223372036854775808,"referrer":null`)
	}
}

// first makes the record one that the first build wrote; see internal/contract/testdata. Its key stays.
func first() func(*rawEvent) {
	return func(r *rawEvent) {
		data, err := os.ReadFile("../../internal/contract/testdata/user-registered.v1.json")
		if err != nil {
			panic(err)
		}
		var kept struct {
			Key     string            `json:"key"`
			Headers map[string]string `json:"headers"`
			Value   json.RawMessage   `json:"value"`
		}
		if err := json.Unmarshal(data, &kept); err != nil {
			panic(err)
		}
		for _, own := range []string{"ce_id", "ce_time", "ce_subject"} {
			kept.Headers[own] = r.headers[own]
		}
		r.headers = kept.Headers
		r.value = []byte(strings.NewReplacer(kept.Key, r.id(), "ada@", r.id()+"@").Replace(string(kept.Value)))
	}
}

// oddities are records that only a log can have, and one for each code. Packages event and contract test all headers
// and payloads, kafka damaged batches and missing offsets, inbox reused ids and gaps.
func oddities() []oddity {
	return []oddity{
		{"nil value", func(r *rawEvent) { r.value = nil }, "empty_value", false},
		{"truncated", func(r *rawEvent) { r.value = r.value[:len(r.value)-3] }, "invalid_json", false},
		{"framed by a schema registry", func(r *rawEvent) {
			r.value = append([]byte{0, 0, 0, 0, 7}, r.value...)
		}, "invalid_json", false},
		{"null", value("null"), "schema_violation", false},
		{"a name with NUL", func(r *rawEvent) { r.value = payload(r.id(), `A\u0000da`, "") }, "schema_violation", false},
		{"a number too large for anything", with(`,"n":1e400000,"m":9223372036854775808`), "", true},
		{"as the first build wrote it", first(), "", true},
		{"as a later build may write it", newer(), "", true},
		{"another source", set("ce_source", contract.SourceNotification), "", true},
		{"no id", set("ce_id", ""), "missing_id", false},
		{"an id of 256 bytes", set("ce_id", strings.Repeat("x", 256)), "invalid_id", false},
		{"no type", set("ce_type", ""), "missing_type", false},
		{"a type without a handler", set("ce_type", "another.type.v1"), "", false},
		{"no source", set("ce_source", ""), "missing_source", false},
		{"nil key", key(nil), "missing_key", false},
		{"empty key", key([]byte{}), "missing_key", false},
		{"another key", key([]byte(uuid.NewString())), "key_mismatch", false},
		{"a longer key than any", func(r *rawEvent) {
			r.headers["ce_subject"] = strings.Repeat("k", event.MaxKeyBytes+1)
			r.key = []byte(r.id())
		}, "invalid_key", false},
		{"a payload about another user", func(r *rawEvent) {
			r.value = payload(uuid.NewString(), "Eve", "")
		}, "subject_mismatch", false},
		{"version 2^63", set("ce_aggregateversion", "9223372036854775808"), "invalid_version", false},
		{"version 2^63-1", set("ce_aggregateversion", "9223372036854775807"), "version_gap", false},
		{"no time", set("ce_time", ""), "", true},
		{"year 300000", set("ce_time", "300000-01-01T00:00:00Z"), "invalid_time", false},
		{"a year ahead", set("ce_time", time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339)), "", true},
		{"older than the inbox remembers", set("ce_time", "2020-01-02T03:04:05Z"), "too_old", false},
		{"900 KB", with(`,"padding":"` + strings.Repeat("x", 900_000) + `"`), "", true},
		{"a thousand headers", func(r *rawEvent) {
			for i := range 1000 {
				header(fmt.Sprint("h", i), "v")(r)
			}
		}, "", true},
		{"a header twice", func(r *rawEvent) { header("x", "1")(r); header("x", "2")(r) }, "", true},
		{"an attribute that is not text", set("ce_source", "\xff\x00"), "invalid_header", false},
		{"Watermill's own id, twice", func(r *rawEvent) {
			header("_watermill_message_uuid", "")(r)
			header("_watermill_message_uuid", "other")(r)
		}, "", true},
		{"structured mode", func(r *rawEvent) {
			clear(r.headers)
			header("content-type", "application/cloudevents+json")(r)
		}, "structured_mode", false},
		{"another spec", set("ce_specversion", "2.0"), "unsupported_spec_version", false},
		{"snappy", func(r *rawEvent) { r.codec = sarama.CompressionSnappy }, "", true},
		{"a rename of an unknown user", func(r *rawEvent) {
			r.headers["ce_type"] = contract.UserRenamed.Type
			r.value = fmt.Appendf(nil, `{"user_id":"%s","name":"Eve","renamed_at":"2026-01-02T03:04:05Z"}`, r.id())
		}, "profile_missing", false},
	}
}

// rememberTenDays is for the event that is too old. The janitor's first round may be slower than the consumer.
func (h *stack) rememberTenDays(t *testing.T) {
	t.Helper()
	execute(t, h.customerDB, `update inbox_horizon set remembers_from = clock_timestamp() - interval '10 days'`)
}

func TestEveryKindOfPoison(t *testing.T) {
	parallel(t)
	h := newStackOn(t, ownBrokers(t), customerDatabase(t), "INBOX_MAX_ATTEMPTS=2")
	h.rememberTenDays(t)
	rows := oddities()
	offsets, behind := make([]int64, len(rows)), make([]string, len(rows))
	var profiles []string
	for i, row := range rows {
		record := healthy()
		person := record.id()
		row.change(record)
		offsets[i] = h.lay(t, record)
		if row.applied {
			profiles = append(profiles, person)
		}
		next := healthy()
		h.lay(t, next)
		behind[i] = next.id()
	}
	again := healthy() // the same id: once with the same payload, then with another
	h.lay(t, again)
	twin := h.lay(t, again)
	again.value = payload(again.id(), "Eve", "")
	conflict := h.lay(t, again)
	last := healthy()
	h.lay(t, last)

	h.start(t, customerService)
	for i, row := range rows {
		testkit.Until(t, func() bool { return h.hasProfile(t, behind[i]) },
			"the partition stands behind: %s", row.name)
		h.awaitLetter(t, offsets[i], row.code, row.name)
	}
	testkit.Until(t, func() bool { return h.hasProfile(t, last.id()) })
	require.Empty(t, h.letterAt(t, twin), "the same event again is no error")
	h.awaitLetter(t, conflict, "id_conflict", "another payload")
	for _, id := range profiles {
		require.True(t, h.hasProfile(t, id), "one that is odd and right")
	}
	require.Equal(t, len(rows)+len(profiles)+2, count(t, h.customerDB, `select count(*) from profile`))
}
