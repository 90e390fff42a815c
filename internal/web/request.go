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
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	mediaJSON = "application/json"
	mediaForm = "application/x-www-form-urlencoded"
)

func readBody(w http.ResponseWriter, r *http.Request, media string) ([]byte, error) {
	limit := exchangeOf(r).config.MaxBodyBytes
	tooLarge := refuse(CodeBodyTooLarge, fmt.Sprintf("The body is longer than %d bytes.", limit))
	switch coding := strings.Join(r.Header["Content-Encoding"], ","); {
	case r.ContentLength == 0:
		return nil, refuse(CodeBodyMissing, "The body is empty.")
	case !isMedia(r, media):
		return nil, refuse(CodeUnsupportedMediaType, "The body must be "+media+" in UTF-8.")
	case !strings.EqualFold(cmp.Or(coding, "identity"), "identity"):
		return nil, refuse(CodeUnsupportedEncoding, "The body must not be compressed.")
	case r.ContentLength > limit:
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	_, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case isTooLarge:
		return nil, tooLarge
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

// Decode reads the body, one JSON object of at most MaxBodyBytes, into a T, a struct. It refuses other media types,
// compressed bodies, unknown members, members twice and wrong types. A member of T that is neither omitempty nor a
// pointer must be there and not null; nested fields are not checked. The error is an [*Error] with a 4xx status, or of
// [Config.CheckBody].
func Decode[T any](w http.ResponseWriter, r *http.Request) (T, error) {
	var none, value T
	body, err := readBody(w, r, mediaJSON)
	if err != nil {
		return none, err
	}
	var whole jsontext.Value
	if err := json.Unmarshal(body, &whole); err != nil {
		return none, jsonError(err)
	}
	if whole.Kind() != jsontext.KindBeginObject {
		return none, refuse(CodeNotAnObject, "The body is not a JSON object.")
	}
	if err := json.Unmarshal(whole, &value, json.RejectUnknownMembers(true)); err != nil {
		return none, jsonError(err)
	}
	if err := checkRequired(reflect.TypeFor[T](), whole); err != nil {
		return none, err
	}
	if check := exchangeOf(r).config.CheckBody; check != nil {
		if err := check(r, body); err != nil {
			return none, err
		}
	}
	return value, nil
}

// checkRequired ignores embedded structs: the generated types have none.
func checkRequired(t reflect.Type, object jsontext.Value) error {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(object, &members); err != nil {
		return jsonError(err)
	}
	code, detail := CodeWrongType, "A member has a value of the wrong type."
	var wrong []Field
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || f.Type.Kind() == reflect.Pointer || strings.Contains(options, "omit") {
			continue
		}
		switch value, there := members[name]; {
		case !there:
			code, detail = CodeMissingMember, "A member is missing."
			wrong = append(wrong, Field{Code: code, Pointer: "#/" + name, Detail: "is missing"})
		case value.Kind() == jsontext.KindNull:
			wrong = append(wrong, wrongType(name, f.Type))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return refuse(code, detail, wrong...)
}

// jsonError does not repeat names that the client invented.
func jsonError(err error) *Error {
	semantic, isSemantic := errors.AsType[*json.SemanticError](err)
	syntactic, isSyntactic := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return refuse(CodeUnknownMember,
			"The body has a member that is not part of this request. Names are compared letter by letter.")
	case isSyntactic:
		return refuse(CodeMalformedJSON, fmt.Sprintf("The body is not valid JSON near byte %d.", syntactic.ByteOffset))
	case !isSemantic:
		return refuse(CodeMalformedJSON, "The body ends in the middle of a JSON value.")
	}
	name, inside, _ := strings.Cut(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/")
	wrong := wrongType(name, semantic.GoType)
	if inside != "" {
		wrong.Detail = wrongInside
	}
	return refuse(CodeWrongType, "A member has a value of the wrong type.", wrong)
}

const wrongInside = "must be what the API describes"

var kinds = map[reflect.Kind]string{
	reflect.String:  "must be a string",
	reflect.Bool:    "must be true or false",
	reflect.Int:     "must be an integer in its range, without fraction or exponent",
	reflect.Int32:   "must be an integer in its range, without fraction or exponent",
	reflect.Int64:   "must be an integer in its range, without fraction or exponent",
	reflect.Float64: "must be a number in its range",
	reflect.Slice:   "must be an array",
	reflect.Array:   "must be an array",
}

func wrongType(member string, t reflect.Type) Field {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return Field{Code: CodeWrongType, Pointer: "#/" + member, Detail: cmp.Or(kinds[t.Kind()], wrongInside)}
}

// IsForm reports that an HTML form sent the request: a person reads the answer.
func IsForm(r *http.Request) bool { return isMedia(r, mediaForm) }

// FormField returns a form's only field. It refuses other fields, and bodies as [Decode] does.
func FormField(w http.ResponseWriter, r *http.Request, name string) (string, error) {
	body, err := readBody(w, r, mediaForm)
	if err != nil {
		return "", err
	}
	form, err := url.ParseQuery(string(body))
	values := form[name]
	switch {
	case err != nil || len(values) > 1:
		return "", ParameterError(http.StatusBadRequest, CodeInvalidParameter, name, "is malformed or there twice")
	case len(values) == 0:
		return "", ParameterError(http.StatusBadRequest, CodeMissingParameter, name, "is missing")
	case len(form) > 1:
		return "", refuse(CodeUnknownMember, "The form has a field that is not part of this request.")
	}
	return values[0], nil
}

const maxIdempotencyKey = 255

// A quoted string escapes only quotes and backslashes.
var (
	idempotencyKey = regexp.MustCompile(`^[ \t]*(?:"((?:[ !#-\[\]-~]|\\["\\])*)"|([!#-\[\]-~]+))[ \t]*$`)
	unescape       = strings.NewReplacer(`\"`, `"`, `\\`, `\`)
)

// IdempotencyKey returns the header's key, "" without a header: 1 to 255 printable ASCII characters, as a quoted string
// (RFC 8941) or bare.
func IdempotencyKey(r *http.Request) (string, error) {
	values := r.Header["Idempotency-Key"]
	if len(values) == 0 {
		return "", nil
	}
	found := idempotencyKey.FindStringSubmatch(values[0])
	if len(values) > 1 || found == nil {
		return "", InvalidIdempotencyKey()
	}
	key := unescape.Replace(found[1] + found[2])
	if key == "" || len(key) > maxIdempotencyKey {
		return "", InvalidIdempotencyKey()
	}
	return key, nil
}

// InvalidIdempotencyKey describes the form.
func InvalidIdempotencyKey() *Error {
	answer := ParameterError(http.StatusBadRequest, CodeIdempotencyKeyInvalid, "Idempotency-Key", "is malformed")
	answer.Detail = "The request header Idempotency-Key is malformed. Send 1 to 255 printable ASCII characters that " +
		"name this request, such as a UUID in double quotes, or leave the header out."
	return answer
}

// ETag returns a version's strong validator: "3", or "3-variant" for one of several representations.
func ETag(version int64, variant string) string {
	tag := strconv.FormatInt(version, 10)
	if variant != "" {
		tag += "-" + variant
	}
	return `"` + tag + `"`
}

// NotModified sets the ETag header. If the client has this representation, it answers 304 and returns true.
func NotModified(w http.ResponseWriter, r *http.Request, etag string) bool {
	w.Header().Set("ETag", etag)
	for _, tag := range list(r.Header["If-None-Match"]) {
		// The weak comparison: a cache that weakened the tag has the same bytes.
		if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	return false
}

// CheckIfMatch returns a 412 if there is an If-Match header and it has no ETag of the expected version, in any variant.
func CheckIfMatch(r *http.Request, expected int64) error {
	header, given := r.Header["If-Match"]
	if !given {
		return nil
	}
	bare := strings.TrimSuffix(ETag(expected, ""), `"`)
	for _, tag := range list(header) {
		if rest, is := strings.CutPrefix(tag, bare); tag == "*" || is && (rest == `"` ||
			strings.HasPrefix(rest, "-") && strings.HasSuffix(rest, `"`)) {
			return nil
		}
	}
	return ParameterError(http.StatusPreconditionFailed, CodePreconditionFailed, "If-Match",
		"is not an ETag of the expected version")
}

// list splits a list header. Our tags have no comma.
func list(values []string) []string {
	entries := strings.Split(strings.Join(values, ","), ",")
	for i, entry := range entries {
		entries[i] = strings.TrimSpace(entry)
	}
	return entries
}
