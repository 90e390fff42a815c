package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of a payload. Ours are flat; a tolerant reader lets others nest what it ignores, but
// not so deep that reading costs more than the record did.
const maxDepth = 32

var (
	errNUL   = errors.New("a string has a NUL character")
	errDepth = errors.New("nested too deeply")
)

// parse reads one JSON document into the form that the schema checker takes. Numbers stay text: nothing overflows.
func parse(data []byte) (any, error) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(data))
	document, err := readValue(decoder)
	if err == nil {
		_, err = decoder.ReadToken()
		if errors.Is(err, io.EOF) {
			return document, nil
		}
		if err == nil {
			err = errors.New("more than one value")
		}
	}
	return nil, &Error{CodeInvalidJSON, reason(err)}
}

// reason says what is wrong in words that never repeat the payload, as the decoder's own do.
func reason(err error) string {
	switch {
	case errors.Is(err, errNUL), errors.Is(err, errDepth):
		return err.Error()
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "a member is there twice"
	}
	return "the payload is not one JSON document in UTF-8"
}

func readValue(d *jsontext.Decoder) (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '{':
		return readObject(d)
	case '[':
		return readArray(d)
	case '"':
		return readText(token)
	case '0':
		return json.Number(token.String()), nil
	case 't', 'f':
		return token.Bool(), nil
	}
	return nil, nil //nolint:nilnil // JSON's null is a value
}

func readText(token jsontext.Token) (string, error) {
	text := token.String()
	if strings.IndexByte(text, 0) >= 0 {
		return "", errNUL
	}
	return text, nil
}

func readObject(d *jsontext.Decoder) (any, error) {
	if d.StackDepth() > maxDepth {
		return nil, errDepth
	}
	members := make(map[string]any, 4)
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name, err := readText(token)
		if err != nil {
			return nil, err
		}
		if members[name], err = readValue(d); err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return members, err
}

func readArray(d *jsontext.Decoder) (any, error) {
	if d.StackDepth() > maxDepth {
		return nil, errDepth
	}
	elements := []any{}
	for d.PeekKind() != ']' {
		element, err := readValue(d)
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
	_, err := d.ReadToken()
	return elements, err
}
