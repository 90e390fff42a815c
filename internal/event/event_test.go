package event_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func sample() event.Event {
	return event.Event{
		ID:         "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",
		Source:     "/test",
		Type:       "com.example.test.v1",
		Key:        "key-1",
		Time:       time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.UTC),
		Version:    7,
		DataSchema: "https://example.com/schema.json",
		Data:       []byte(`{"a":1}`),
		Extensions: map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
	}
}

func TestAnEventSurvivesTheMessage(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*event.Event){
		"complete":      func(*event.Event) {},
		"no version":    func(e *event.Event) { e.Version = 0 },
		"no schema":     func(e *event.Event) { e.DataSchema = "" },
		"no extensions": func(e *event.Event) { e.Extensions = nil },
		"foreign id":    func(e *event.Event) { e.ID = "orders-3-1042" },
		"longest id":    func(e *event.Event) { e.ID = strings.Repeat("x", event.MaxIDLength) },
		"in any script": func(e *event.Event) { e.ID = strings.Repeat("\u65e5", event.MaxIDLength) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := sample()
			change(&want)
			got, err := event.FromMessage(want.Message())
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestFromMessageNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	set := func(name, value string) func(*message.Message) {
		return func(m *message.Message) { m.Metadata[name] = value }
	}
	id := func(id string) func(*message.Message) { return func(m *message.Message) { m.UUID = id } }
	for name, row := range map[string]struct {
		spoil func(*message.Message)
		want  event.Code
	}{
		"no id":                {id(""), event.CodeMissingID},
		"id too long":          {id(strings.Repeat("x", 256)), event.CodeInvalidID},
		"id too long, any way": {id(strings.Repeat("\u65e5", 256)), event.CodeInvalidID},
		"id with NUL":          {id("a\x00b"), event.CodeInvalidID},
		"id with line break":   {id("a\nb"), event.CodeInvalidID},
		"id not UTF-8":         {id("a\xff"), event.CodeInvalidID},
		"no type":              {set("ce_type", ""), event.CodeMissingType},
		"no source":            {set("ce_source", ""), event.CodeMissingSource},
		"no subject":           {set("ce_subject", ""), event.CodeMissingKey},
		"no key":               {set("record_key", ""), event.CodeMissingKey},
		"key too long":         {set("record_key", strings.Repeat("x", 1025)), event.CodeInvalidKey},
		"key is another":       {set("record_key", "key-2"), event.CodeKeyMismatch},
		"no spec version":      {set("ce_specversion", ""), event.CodeUnsupportedSpec},
		"spec version 0.3":     {set("ce_specversion", "0.3"), event.CodeUnsupportedSpec},
		"structured mode":      {set("content-type", "application/cloudevents+json"), event.CodeStructuredMode},
		"structured, without id": {func(m *message.Message) {
			m.UUID, m.Metadata = "", message.Metadata{"content-type": "Application/CloudEvents+json; charset=utf-8"}
		}, event.CodeStructuredMode},
		"type not UTF-8":         {set("ce_type", "\xff"), event.CodeInvalidHeader},
		"source with NUL":        {set("ce_source", "a\x00"), event.CodeInvalidHeader},
		"subject not UTF-8":      {set("ce_subject", "\xff"), event.CodeInvalidHeader},
		"schema not UTF-8":       {set("ce_dataschema", "\xff"), event.CodeInvalidHeader},
		"time not UTF-8":         {set("ce_time", "\xff"), event.CodeInvalidTime},
		"time without zone":      {set("ce_time", "2026-01-02T03:04:05"), event.CodeInvalidTime},
		"no such day":            {set("ce_time", "2026-02-30T00:00:00Z"), event.CodeInvalidTime},
		"time before the events": {set("ce_time", "1970-01-01T00:00:00Z"), event.CodeInvalidTime},
		"time in the far future": {set("ce_time", "2200-01-01T00:00:00Z"), event.CodeInvalidTime},
		"year 300000":            {set("ce_time", "300000-01-01T00:00:00Z"), event.CodeInvalidTime},
		"version 0":              {set("ce_aggregateversion", "0"), event.CodeInvalidVersion},
		"version negative":       {set("ce_aggregateversion", "-1"), event.CodeInvalidVersion},
		"version overflows":      {set("ce_aggregateversion", "9223372036854775808"), event.CodeInvalidVersion},
		"version is no number":   {set("ce_aggregateversion", "1e3"), event.CodeInvalidVersion},
		"nil value":              {func(m *message.Message) { m.Payload = nil }, event.CodeEmptyValue},
		"empty value":            {func(m *message.Message) { m.Payload = []byte{} }, event.CodeEmptyValue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := sample().Message()
			row.spoil(m)
			_, err := event.FromMessage(m)
			var decodeErr *event.ContractError
			require.ErrorAs(t, err, &decodeErr)
			require.Equal(t, row.want, decodeErr.Code)
			require.Equal(t, string(row.want), decodeErr.ErrorCode())
		})
	}
}

func TestTheErrorNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"ce_subject":     "no ce_subject",
		"record_key":     "no record key",
		"ce_specversion": "no ce_specversion",
	} {
		m := sample().Message()
		m.SetContext(event.WithOrigin(t.Context(), event.Origin{Topic: "t"}))
		delete(m.Metadata, name)
		_, err := event.FromMessage(m)
		require.ErrorContains(t, err, want)
	}
	m := sample().Message()
	delete(m.Metadata, "record_key")
	_, err := event.FromMessage(m)
	require.NoError(t, err, "no broker delivered it, so its key is not known")
}

func TestForeignRecordsAreEvents(t *testing.T) {
	t.Parallel()
	appended := time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC)
	at, long := sample().Time, strings.Repeat("0", 55)
	for name, row := range map[string]struct {
		header, value string
		extensions    map[string]string
		at            time.Time
	}{
		"a binary number":           {"x-bin", "\x00\x00\x00\x07", map[string]string{"x-bin": "\x00\x00\x00\x07"}, at},
		"a name that is not text":   {"\xff", "1", map[string]string{"\xff": "1"}, at},
		"a foreign extension":       {"ce_x", "\xff", map[string]string{"ce_x": "\xff"}, at},
		"a correlation id of bytes": {"ce_correlationid", "\xff", map[string]string{"ce_correlationid": "\xff"}, at},
		"a broken traceparent":      {"traceparent", "\xff\x00" + long, nil, at},
		"a broken tracestate":       {"tracestate", "a=\xff", nil, at},
		"a content type of bytes":   {"content-type", "\xff", nil, at},
		"no time":                   {"ce_time", "", nil, appended},
		"a lower-case time":         {"ce_time", "2026-01-02t03:04:05.6789z", nil, at},
		"a time with an offset":     {"ce_time", "2026-01-02t04:04:05.6789+01:00", nil, at},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			foreign := sample()
			foreign.Extensions = nil
			m := foreign.Message()
			m.Metadata[row.header] = row.value
			m.SetContext(event.WithOrigin(t.Context(), event.Origin{Topic: "t", Time: appended}))
			e, err := event.FromMessage(m)
			require.NoError(t, err)
			require.Equal(t, row.extensions, e.Extensions)
			require.Equal(t, row.at, e.Time)
			cause := e.Cause()
			require.Equal(t, event.Cause{CorrelationID: e.ID, CausationID: e.ID}, cause, "fit for what follows")
		})
	}
}

func TestThePositionIsNoExtension(t *testing.T) {
	t.Parallel()
	e := event.Event{ID: "1", Source: "/s", Type: "t", Key: "k", Version: 1, Time: event.Earliest, Data: []byte("{}")}
	m := e.Message()
	m.Metadata[event.HeaderPosition] = "42"
	require.Contains(t, event.MessageHeaders(m), event.Header{Name: event.HeaderPosition, Value: []byte("42")})
	e, err := event.FromMessage(m)
	require.NoError(t, err)
	require.Empty(t, e.Extensions)
}

func TestAnEventWithoutATimeAndARecordHappensNow(t *testing.T) {
	t.Parallel()
	for name, ctx := range map[string]context.Context{
		"no record":          t.Context(),
		"a record of no day": event.WithOrigin(t.Context(), event.Origin{Time: time.UnixMilli(-1)}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := sample().Message()
			delete(m.Metadata, "ce_time")
			m.SetContext(ctx)
			e, err := event.FromMessage(m)
			require.NoError(t, err)
			require.WithinDuration(t, time.Now(), e.Time, time.Minute)
			require.Equal(t, time.UTC, e.Time.Location())
		})
	}
}

func TestABrokenEventIsReadAsFarAsItGoes(t *testing.T) {
	t.Parallel()
	m := sample().Message()
	m.Metadata["ce_time"] = "yesterday"
	e, err := event.FromMessage(m)
	require.Error(t, err)
	require.Equal(t, "com.example.test.v1", e.Type)
	require.EqualValues(t, 7, e.Version)
}

func FuzzFromMessage(f *testing.F) {
	f.Add("id", "key", "2026-01-02T03:04:05Z", "1", []byte(`{}`))
	f.Add("", "\xff", "x", "-", []byte(nil))
	f.Fuzz(func(t *testing.T, id, key, at, version string, data []byte) {
		m := message.NewMessage(id, data)
		m.Metadata = message.Metadata{
			"ce_source": "/s", "ce_type": "t", "ce_specversion": "1.0", "ce_subject": key, "record_key": key,
			"ce_time": at, "ce_aggregateversion": version,
		}
		e, err := event.FromMessage(m)
		if err != nil {
			var decodeErr *event.ContractError
			require.True(t, errors.As(err, &decodeErr))
			return
		}
		require.False(t, e.Time.IsZero())
		again, err := event.FromMessage(e.Message())
		require.NoError(t, err, "what was read can be written and read")
		require.Equal(t, e, again)
	})
}
