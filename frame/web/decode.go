package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const mediaJSON = "application/json"

// maxDepth is how deep a body may nest, the object itself included.
const maxDepth = 32

// Decode reads the body into a T, a struct, and refuses all that it cannot account for: a media type other than
// application/json, a compressed or over-long body, invalid UTF-8, a byte order mark, a second value, anything but an
// object, members that are repeated, unknown or written in another case, and values of another type. A member that is
// not omitempty and no pointer must be there and not be null; that holds for T's own fields, not for nested ones.
//
// What [Config.CheckBody] refuses is refused last.
//
// The error is always an [*Error] with a 4xx status, unless CheckBody returns another one.
func Decode[T any](w http.ResponseWriter, r *http.Request) (T, error) {
	var none, value T
	body, err := readBody(w, r, mediaJSON)
	if err != nil {
		return none, err
	}
	members, err := scan(body)
	if err != nil {
		return none, err
	}
	fields := fieldsOf[T]()
	if err := json.Unmarshal(body, &value, json.RejectUnknownMembers(true)); err != nil {
		return none, semanticError(err, fields)
	}
	if err := checkRequired(members, fields); err != nil {
		return none, err
	}
	if check := exchangeOf(r).config.CheckBody; check != nil {
		if err := check(r, body); err != nil {
			return none, err
		}
	}
	return value, nil
}

// scan checks that the body is one JSON object in UTF-8 with unique names and returns the kinds of its own members.
func scan(body []byte) (map[string]jsontext.Kind, error) {
	switch {
	case !utf8.Valid(body):
		return nil, refuse(CodeMalformedJSON, "The body is not valid UTF-8.")
	case bytes.HasPrefix(body, []byte("\ufeff")):
		return nil, refuse(CodeMalformedJSON, "The body begins with a byte order mark.")
	case len(bytes.TrimLeft(body, " \t\r\n")) == 0:
		return nil, errBodyMissing()
	}
	decoder := jsontext.NewDecoder(bytes.NewBuffer(body))
	isObject := decoder.PeekKind() == '{'
	members, err := scanValue(decoder)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, refuse(CodeMalformedJSON, "There is more after the JSON value.")
	}
	if !isObject {
		return nil, refuse(CodeNotAnObject, "The body is not a JSON object.")
	}
	return members, nil
}

// scanValue reads one value to its end and remembers the members of the outermost object.
func scanValue(decoder *jsontext.Decoder) (map[string]jsontext.Kind, error) {
	members := make(map[string]jsontext.Kind)
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			return nil, syntaxError(err)
		}
		depth := decoder.StackDepth()
		if depth > maxDepth {
			return nil, refuse(CodeMalformedJSON, fmt.Sprintf("The body nests deeper than %d levels.", maxDepth))
		}
		if depth == 0 {
			return members, nil
		}
		if kind, count := decoder.StackIndex(1); depth == 1 && kind == '{' && count%2 == 1 {
			name := token.String() // before the next read, which overwrites it
			members[name] = decoder.PeekKind()
		}
	}
}

func syntaxError(err error) *Error {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return refuse(CodeDuplicateMember, "A member of an object is there twice.")
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return refuse(CodeMalformedJSON, fmt.Sprintf("The body is not valid JSON near byte %d.", syntactic.ByteOffset))
	}
	return refuse(CodeMalformedJSON, "The body ends in the middle of a JSON value.")
}
