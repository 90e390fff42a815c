package event_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

const orderID = "https://shop.example/events/order.json"

var files = fstest.MapFS{"events/order.json": {Data: []byte(
	`{"$id":"` + orderID + `","type":"object","required":["total"],"properties":{"total":{"type":"integer"}}}`)}}

type order struct {
	Order string    `json:"order"`
	Total int       `json:"total"`
	At    time.Time `json:"at"`
}

func (o order) About() (string, time.Time) { return o.Order, o.At }
func (o order) Check() error {
	switch {
	case o.Total == 0:
		return errors.New("total: is nothing")
	case o.Total < 0:
		return errDebt
	}
	return nil
}

var errDebt = fmt.Errorf("total: %w", codedError("debt"))

type codedError string

func (e codedError) Error() string     { return "is below nothing" }
func (e codedError) ErrorCode() string { return string(e) }

type plain struct {
	Total int `json:"total"`
}

func declare[T any](name, source string) event.Declaration {
	return event.Define[T](event.Declaration{Type: name, Source: source, DataSchema: orderID}).Declaration
}

func TestThePayloadsOwnRules(t *testing.T) {
	t.Parallel()
	c, err := event.LoadSchemas(files, declare[order]("order", "/shop"), declare[plain]("plain", "/till"))
	require.NoError(t, err)
	newEvent := func(name, source, data string) event.Event {
		return event.Event{Type: name, Source: source, Key: "7", Time: time.Now(), Data: []byte(data)}
	}
	for name, test := range map[string]struct {
		event event.Event
		want  string
	}{
		"fits":                {newEvent("order", "/shop", `{"order":"7","total":1}`), ""},
		"imported":            {newEvent("order", "/import", `{"order":"7","total":1}`), ""},
		"without rules":       {newEvent("plain", "/till", `{"total":0}`), ""},
		"breaks the schema":   {newEvent("plain", "/till", `{"total":"1"}`), "schema_violation: /total has the wrong type"},
		"breaks a rule":       {newEvent("order", "/shop", `{"order":"7","total":0}`), "schema_violation: total: is nothing"},
		"breaks a coded rule": {newEvent("order", "/shop", `{"order":"7","total":-1}`), "debt: total: is below nothing"},
		"another aggregate": {
			newEvent("order", "/shop", `{"order":"8","total":1}`),
			"subject_mismatch: the payload is about another aggregate than the envelope",
		},
		"of another source": {newEvent("order", "/till", `{"order":"7","total":1}`), ""},
		"a member twice": {
			newEvent("order", "/shop", `{"order":"7","total":1,"total":2}`),
			"invalid_json: the payload is not one JSON document in UTF-8 with unique members",
		},
		"another type": {
			newEvent("order", "/shop", `{"order":7,"total":1}`),
			`invalid_json: the payload does not decode into event_test.order: "/order" is of another type`,
		},
		"not declared": {newEvent("parcel", "/shop", `{"total":1}`), "unknown_type: no such event type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.Validate(test.event)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, "check event: "+test.want)
		})
	}
}

// The schema library computes numbers exactly, and panics where it cannot.
func TestNumbersBeyondAllLimits(t *testing.T) {
	t.Parallel()
	type price struct {
		Amount float64 `json:"amount"`
	}
	declared := event.Define[price](event.Declaration{Type: "price", Source: "/shop", DataSchema: orderID})
	c, err := event.LoadSchemas(fstest.MapFS{"events/price.json": {Data: []byte(`{"$id":"` + orderID + `",
		"properties":{"amount":{"type":"number","maximum":100}},
		"additionalProperties":{"type":"array","items":{"type":"number","minimum":0}}}`)}}, declared.Declaration)
	require.NoError(t, err)
	for payload, want := range map[string]string{
		`{"amount":1e2000000000}`:                 "schema_violation: /amount breaks maximum",
		`{"amount":-1e2000000000}`:                `invalid_json: the payload does not decode`,
		`{"amount":1e-2000000000}`:                "",
		`{"amount":1E+0002}`:                      "",
		`{"amount":1e2,"more":[1e2000000000]}`:    "",
		`{"amount":1e2,"more":[[-1e2000000000]]}`: "schema_violation: /more/0 has the wrong type",
		`{"amount":1e2,"more":[-1e2000000000]}`:   "schema_violation: /more/0 breaks minimum",
	} {
		err := c.Validate(event.Event{Type: "price", Data: []byte(payload)})
		if want == "" {
			require.NoError(t, err, payload)
			continue
		}
		require.ErrorContains(t, err, want, payload)
	}
}

func TestDeclarationsThatContradictAreNamedTogether(t *testing.T) {
	t.Parallel()
	first, second := declare[plain]("plain", "/till"), declare[order]("plain", "/shop")
	first.Topic, second.Topic = "sales", "sales"
	lacking := declare[plain]("lacking", "/till")
	lacking.DataSchema = "https://shop.example/events/lacking.json"
	_, err := event.LoadSchemas(files, first, second, lacking)
	require.EqualError(t, err, "two events have the type plain\n"+
		"two sources write to topic sales: /till and /shop\n"+
		"event lacking has no schema: no file in events has the $id https://shop.example/events/lacking.json")
	_, err = event.LoadSchemas(fstest.MapFS{
		"events/a.json": {Data: []byte(`{`)}, "events/b.json": {Data: []byte(`[`)},
	}, declare[plain]("plain", "/till"))
	require.ErrorContains(t, err, "load schema events/a.json")
	require.ErrorContains(t, err, "load schema events/b.json")
	_, err = event.LoadSchemas(fstest.MapFS{
		"events/a.json": {Data: []byte(`{"$id":"` + orderID + `","type":7}`)},
	}, declare[plain]("plain", "/till"))
	require.ErrorContains(t, err, "load schema of plain: ")
}

func TestAFramedPayloadIsNamed(t *testing.T) {
	t.Parallel()
	c, err := event.LoadSchemas(files, declare[order]("order", "/shop"))
	require.NoError(t, err)
	for payload, want := range map[string]string{
		"\x00\x00\x00\x01\x02{\"total\":1}": "framed by a schema registry (schema id 258); send plain JSON",
		"\x00\x00\x00\x01\x02":              "not one JSON document",
		"\x01\x00\x00\x01\x02{\"total\":1}": "not one JSON document",
	} {
		err := c.Validate(event.Event{Type: "order", Data: []byte(payload)})
		require.ErrorContains(t, err, "invalid_json")
		require.ErrorContains(t, err, want)
	}
}
