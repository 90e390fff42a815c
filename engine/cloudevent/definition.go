package cloudevent

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
)

// Definition declares one version of one event: what its envelope says and, as T, the struct of its payload. An event
// is declared once; writers and handlers take all of it from there, so neither can name the type of one event and the
// struct of another.
type Definition[T any] struct{ Declaration }

// Declaration is a [Definition] without its type, for lists of them.
type Declaration struct {
	Type       string // ce_type: reverse DNS name with its version
	Topic      string // where it is published
	Source     string // ce_source of its producer
	DataSchema string // ce_dataschema: the $id of its payload's schema

	decode func(Event) (any, error)
}

// Define declares an event whose payload is a T.
func Define[T any](d Declaration) Definition[T] {
	d.decode = func(e Event) (any, error) { return Definition[T]{d}.Decode(e) }
	return Definition[T]{d}
}

// New makes the event of a payload: about the aggregate named key, at its version (0: the next one of the key) and
// business time. The outbox gives it its id and its cause. The error is json's, for strings that are not UTF-8; whether
// the payload fits its schema is the outbox's to check.
func (d Definition[T]) New(key string, version int64, at time.Time, payload T) (Event, error) {
	data, err := json.Marshal(payload)
	if err != nil {
		return Event{}, fmt.Errorf("encode event %s: %w", d.Type, err)
	}
	return Event{
		Source: d.Source, Type: d.Type, Topic: d.Topic, Key: key, Version: version,
		DataSchema: d.DataSchema, Time: at, Data: data,
	}, nil
}

// Decode reads the payload of an event. Unknown members are ignored: a newer producer may have added them. Names are
// compared letter by letter, as schemas compare them: encoding/json would let an unchecked "NAME" overwrite a checked
// "name". Missing members are zero values, unless a schema has been asked before. The error never repeats the payload.
func (d Definition[T]) Decode(e Event) (T, error) {
	var payload T
	if err := json.Unmarshal(e.Data, &payload); err != nil {
		var none T
		place := ""
		if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
			place = string(wrong.JSONPointer)
		}
		return none, fmt.Errorf("the payload does not decode into %T: %q is of another type", none, place)
	}
	return payload, nil
}

// Payload is [Definition.Decode] for who knows the event only as one of a list. It panics for a declaration that is not
// a definition's.
func (d Declaration) Payload(e Event) (any, error) { return d.decode(e) }
