package web

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	mediaJSON = "application/json"
	mediaForm = "application/x-www-form-urlencoded"
)

// readBody returns the body of a request that says it is of the media type, in UTF-8 and uncompressed, and that keeps
// to the limit.
func readBody(w http.ResponseWriter, r *http.Request, media string) ([]byte, error) {
	limit := exchangeOf(r).config.MaxBodyBytes
	tooLarge := func() error {
		return refuse(CodeBodyTooLarge, fmt.Sprintf("The body is longer than %d bytes.", limit))
	}
	switch coding := strings.Join(r.Header["Content-Encoding"], ","); {
	case r.ContentLength == 0:
		return nil, refuse(CodeBodyMissing, "The body is empty.")
	case !isMedia(r, media):
		return nil, refuse(CodeUnsupportedMediaType, "The body must be "+media+" in UTF-8.")
	case !strings.EqualFold(cmp.Or(coding, "identity"), "identity"):
		return nil, refuse(CodeUnsupportedEncoding, "The body must not be compressed.")
	case r.ContentLength > limit:
		return nil, tooLarge()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, is := errors.AsType[*http.MaxBytesError](err); is {
		return nil, tooLarge()
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refuse(CodeRequestTimeout, "The body did not arrive in time.")
	case err != nil:
		return nil, refuse(CodeBodyUnreadable, "The body ended before its announced length, or is wrongly framed.")
	case len(bytes.TrimSpace(body)) == 0:
		return nil, refuse(CodeBodyMissing, "The body is empty.")
	}
	return body, nil
}

func isMedia(r *http.Request, want string) bool {
	values := r.Header["Content-Type"]
	if len(values) != 1 {
		return false
	}
	media, parameters, err := mime.ParseMediaType(values[0])
	charset, given := parameters["charset"]
	delete(parameters, "charset")
	return err == nil && media == want && len(parameters) == 0 && (!given || strings.EqualFold(charset, "utf-8"))
}

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
	var whole jsontext.Value
	var members map[string]jsontext.Value
	switch err = json.Unmarshal(body, &whole); {
	case err != nil:
		return none, jsonError(err)
	case whole.Kind() != jsontext.KindBeginObject:
		return none, refuse(CodeNotAnObject, "The body is not a JSON object.")
	}
	if err = json.Unmarshal(whole, &members); err == nil {
		err = json.Unmarshal(whole, &value, json.RejectUnknownMembers(true))
	}
	if err != nil {
		return none, jsonError(err)
	}
	if err := checkRequired(reflect.TypeFor[T](), members); err != nil {
		return none, err
	}
	if check := exchangeOf(r).config.CheckBody; check != nil {
		if err := check(r, body); err != nil {
			return none, err
		}
	}
	return value, nil
}

// checkRequired reads off T's struct tags what must be there. Embedded structs are not looked into: the generated types
// have none.
func checkRequired(t reflect.Type, members map[string]jsontext.Value) error {
	var missing, null []Field
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || f.Type.Kind() == reflect.Pointer || strings.Contains(options, "omit") {
			continue
		}
		switch value, there := members[name]; {
		case !there:
			missing = append(missing, Field{Code: CodeMissingMember, Pointer: "#/" + name, Detail: "is missing"})
		case value.Kind() == jsontext.KindNull:
			null = append(null, Field{Code: CodeWrongType, Pointer: "#/" + name, Detail: "must be " + kindInWords(f.Type)})
		}
	}
	switch {
	case missing != nil:
		return refuse(CodeMissingMember, "A member is missing.", append(missing, null...)...)
	case null != nil:
		return refuse(CodeWrongType, "A member has a value of the wrong type.", null...)
	}
	return nil
}

// jsonError says what is wrong with a body, and which of our members has the wrong type. Names that the client invented
// are not repeated.
func jsonError(err error) *Error {
	semantic, isSemantic := errors.AsType[*json.SemanticError](err)
	syntactic, isSyntactic := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return refuse(CodeUnknownMember,
			"The body has a member that is not part of this request. Names are compared letter by letter.")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return refuse(CodeDuplicateMember, "A member of an object is there twice.")
	case isSyntactic:
		return refuse(CodeMalformedJSON, fmt.Sprintf("The body is not valid JSON near byte %d.", syntactic.ByteOffset))
	case !isSemantic:
		return refuse(CodeMalformedJSON, "The body ends in the middle of a JSON value.")
	}
	name, inside, _ := strings.Cut(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/")
	words := "what the API describes"
	if inside == "" {
		words = kindInWords(semantic.GoType)
	}
	return refuse(CodeWrongType, "A member has a value of the wrong type.",
		Field{Code: CodeWrongType, Pointer: "#/" + name, Detail: "must be " + words})
}

// kinds are the types of members in words.
var kinds = map[reflect.Kind]string{
	reflect.String:  "a string",
	reflect.Bool:    "true or false",
	reflect.Int:     "an integer in its range, without fraction or exponent",
	reflect.Int32:   "an integer in its range, without fraction or exponent",
	reflect.Int64:   "an integer in its range, without fraction or exponent",
	reflect.Float64: "a number in its range",
	reflect.Slice:   "an array",
	reflect.Array:   "an array",
}

func kindInWords(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return cmp.Or(kinds[t.Kind()], "what the API describes")
}

// IsForm says that the request was sent by an HTML form, so that its sender is a person who reads the answer.
func IsForm(r *http.Request) bool { return isMedia(r, mediaForm) }

// FormField returns the one field that a form of this name has. A body that is missing, too long, broken or compressed,
// and any field beside it, is refused as [Decode] refuses it. The error is always an [*Error] with a 4xx status.
func FormField(w http.ResponseWriter, r *http.Request, name string) (string, error) {
	body, err := readBody(w, r, mediaForm)
	if err != nil {
		return "", err
	}
	form, err := url.ParseQuery(string(body))
	values, given := form[name]
	switch {
	case err != nil:
		return "", ParameterError(http.StatusBadRequest, CodeInvalidParameter, name, "is malformed")
	case !given:
		return "", ParameterError(http.StatusBadRequest, CodeMissingParameter, name, "is missing")
	case len(values) > 1:
		return "", ParameterError(http.StatusBadRequest, CodeInvalidParameter, name, "is there more than once")
	case len(form) > 1:
		return "", refuse(CodeUnknownMember, "The form has a field that is not part of this request.")
	}
	return values[0], nil
}
