package web_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/web"
)

// secret is in every bad body: no answer may repeat it.
const secret = "s3cret"

func with(member, value string) string {
	return strings.Replace(goodThing, `"`+member+`":`, `"`+member+`":`+value+`,"`+secret+`":`, 1)
}

// sized is valid except for its length.
func sized(n int) string {
	return strings.Replace(goodThing, "Ada", strings.Repeat("x", n-len(goodThing)+len("Ada")), 1)
}

func TestBadBodiesAreProblems(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	replace := func(old, replacement string) string { return strings.Replace(goodThing, old, replacement, 1) }
	for name, test := range map[string]struct {
		body   string
		status int
		code   web.Code
	}{
		"empty":                  {"", 400, web.CodeBodyMissing},
		"only blanks":            {" \r\n\t ", 400, web.CodeBodyMissing},
		"null":                   {"null", 400, web.CodeNotAnObject},
		"array":                  {"[]", 400, web.CodeNotAnObject},
		"number":                 {"1", 400, web.CodeNotAnObject},
		"not JSON":               {secret, 400, web.CodeMalformedJSON},
		"truncated":              {goodThing[:20], 400, web.CodeMalformedJSON},
		"two values":             {goodThing + goodThing, 400, web.CodeMalformedJSON},
		"member twice":           {replace("{", `{"name":"`+secret+`",`), 400, web.CodeMalformedJSON},
		"member twice, nested":   {with("count", `{"a":1,"a":2}`), 400, web.CodeMalformedJSON},
		"another case":           {replace("name", "Name"), 400, web.CodeUnknownMember},
		"unknown member":         {replace("{", `{"`+secret+`":1,`), 400, web.CodeUnknownMember},
		"unknown member, nested": {replace("}", `,"note":{"text":"x","`+secret+`":1}}`), 400, web.CodeUnknownMember},
		"missing member":         {`{"email":"` + secret + `"}`, 400, web.CodeMissingMember},
		"null member":            {replace(`"Ada"`, "null"), 400, web.CodeWrongType},
		"number for a string":    {replace(`"Ada"`, "7"), 400, web.CodeWrongType},
		"string for a number":    {replace(`"count":1`, `"count":"1"`), 400, web.CodeWrongType},
		"wrong type, nested":     {replace("}", `,"note":{"text":1}}`), 400, web.CodeWrongType},
		"fraction":               {replace(`"count":1`, `"count":1.0`), 400, web.CodeWrongType},
		"exponent":               {replace(`"count":1`, `"count":1e3`), 400, web.CodeWrongType},
		"2^63":                   {replace(`"count":1`, `"count":9223372036854775808`), 400, web.CodeWrongType},
		"20,000 arrays":          {replace(`"Ada"`, strings.Repeat("[", 20_000)), 400, web.CodeMalformedJSON},
		"64 KiB and one":         {sized(64<<10 + 1), 413, web.CodeBodyTooLarge},
		"10 MB":                  {replace("Ada", strings.Repeat("x", 10<<20)), 413, web.CodeBodyTooLarge},
		"lone surrogate":         {replace("Ada", `\ud800`), 400, web.CodeMalformedJSON},
		"invalid UTF-8":          {replace("Ada", "\xff"), 400, web.CodeMalformedJSON},
		"byte order mark":        {"\ufeff" + goodThing, 400, web.CodeMalformedJSON},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.post(t, strings.NewReader(test.body), nil)
			require.Equal(t, test.status, got.status, got.body)
			require.Equal(t, test.code, got.problem(t).Code)
			require.NotContains(t, got.body, secret)
		})
	}
	t.Cleanup(func() {
		require.Zero(t, s.created.Load(), "a bad body reached the handler")
		require.NotContains(t, s.log.String(), secret)
		require.NotContains(t, s.log.String(), `"level":"ERROR"`)
	})
}

func TestGoodBodiesPass(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	const charset = `Application/JSON; Charset="UTF-8"`
	for name, test := range map[string]struct {
		body    io.Reader
		headers map[string]string
	}{
		"plain":               {strings.NewReader(goodThing), nil},
		"blanks around":       {strings.NewReader("\r\n\t " + goodThing + " \n"), nil},
		"64 KiB":              {strings.NewReader(sized(64 << 10)), nil},
		"2^63-1":              {strings.NewReader(strings.Replace(goodThing, ":1", ":9223372036854775807", 1)), nil},
		"optional null":       {strings.NewReader(strings.Replace(goodThing, "}", `,"note":null}`, 1)), nil},
		"without a length":    {io.MultiReader(strings.NewReader(goodThing)), nil},
		"charset":             {strings.NewReader(goodThing), map[string]string{"Content-Type": charset}},
		"encoding identity":   {strings.NewReader(goodThing), map[string]string{"Content-Encoding": "identity"}},
		"bare key":            {strings.NewReader(goodThing), map[string]string{"Idempotency-Key": "k-1"}},
		"accepts only itself": {strings.NewReader(goodThing), map[string]string{"Accept": "image/png"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.post(t, test.body, test.headers)
			require.Equal(t, http.StatusCreated, got.status, got.body)
			require.Equal(t, "application/json", got.header.Get("Content-Type"))
		})
	}
}

func TestBadMediaIsAProblem(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	for name, test := range map[string]struct {
		header, value string
		code          web.Code
	}{
		"no type":         {"Content-Type", "", web.CodeUnsupportedMediaType},
		"text":            {"Content-Type", "text/plain", web.CodeUnsupportedMediaType},
		"form":            {"Content-Type", "application/x-www-form-urlencoded", web.CodeUnsupportedMediaType},
		"utf-16":          {"Content-Type", "application/json; charset=utf-16", web.CodeUnsupportedMediaType},
		"other parameter": {"Content-Type", "application/json; version=2", web.CodeUnsupportedMediaType},
		"list":            {"Content-Type", "application/json, text/plain", web.CodeUnsupportedMediaType},
		"gzip":            {"Content-Encoding", "gzip", web.CodeUnsupportedEncoding},
		"two":             {"Content-Encoding", "identity, gzip", web.CodeUnsupportedEncoding},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.post(t, strings.NewReader(goodThing), map[string]string{test.header: test.value})
			require.Equal(t, http.StatusUnsupportedMediaType, got.status)
			require.Equal(t, test.code, got.problem(t).Code)
		})
	}
}

func TestAnEndlessBodyIsCutOff(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{MaxBodyBytes: 1000}, &web.Server{})
	got := s.post(t, io.MultiReader(strings.NewReader(`{"email":"`), strings.NewReader(strings.Repeat("x", 5000))), nil)
	require.Equal(t, http.StatusRequestEntityTooLarge, got.status)
	p := got.problem(t)
	require.Equal(t, web.CodeBodyTooLarge, p.Code)
	require.Equal(t, "The body is longer than 1000 bytes.", p.Detail)
}

func TestProblemsNameTheMembers(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	for name, test := range map[string]struct {
		body string
		want []web.Field
	}{
		"missing": {`{"email":"x"}`, []web.Field{
			{Code: web.CodeMissingMember, Pointer: "#/name", Detail: "is missing"},
			{Code: web.CodeMissingMember, Pointer: "#/count", Detail: "is missing"},
		}},
		"null": {`{"email":null,"name":"x","count":1}`, []web.Field{
			{Code: web.CodeWrongType, Pointer: "#/email", Detail: "must be a string"},
		}},
		"type": {`{"email":"x","name":"x","count":"1"}`, []web.Field{{
			Code: web.CodeWrongType, Pointer: "#/count",
			Detail: "must be an integer in its range, without fraction or exponent",
		}}},
		"nested": {`{"email":"x","name":"x","count":1,"note":{"text":7}}`, []web.Field{
			{Code: web.CodeWrongType, Pointer: "#/note", Detail: "must be what the API describes"},
		}},
		"unknown": {`{"` + secret + `":1}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, s.post(t, strings.NewReader(test.body), nil).problem(t).Fields)
		})
	}
}

type every struct {
	Text   string   `json:"text"`
	Yes    bool     `json:"yes"`
	Number int32    `json:"number"`
	Rate   float64  `json:"rate"`
	List   []string `json:"list"`
	Maybe  *bool    `json:"maybe"`
	Some   []int64  `json:"some,omitempty"`
	Hidden string   `json:"-"`
}

func TestProblemsSayWhatAMemberMustBe(t *testing.T) {
	t.Parallel()
	const good = `"text":"x","yes":true,"number":1,"rate":1.5,"list":[]`
	decoded := func(body string) (every, *web.Error) {
		value, err := decode[every]([]byte(body))
		refused, _ := errors.AsType[*web.Error](err)
		return value, refused
	}
	value, refused := decoded(`{` + good + `}`)
	require.Nil(t, refused)
	require.Equal(t, every{Text: "x", Yes: true, Number: 1, Rate: 1.5, List: []string{}}, value)
	for member, want := range map[string]struct{ wrong, detail string }{
		"text":   {`1`, "must be a string"},
		"yes":    {`"true"`, "must be true or false"},
		"number": {`2147483648`, "must be an integer in its range, without fraction or exponent"},
		"rate":   {`"1"`, "must be a number in its range"},
		"list":   {`{}`, "must be an array"},
		"maybe":  {`"x"`, "must be true or false"},
		"some":   {`1`, "must be an array"},
	} {
		body := `{` + good + `}`
		if i := strings.Index(body, `"`+member+`":`); i >= 0 {
			rest := body[i+len(member)+3:]
			body = body[:i] + `"` + member + `":` + want.wrong + rest[strings.IndexAny(rest, ",}"):]
		} else {
			body = strings.TrimSuffix(body, "}") + `,"` + member + `":` + want.wrong + `}`
		}
		_, refused := decoded(body)
		require.NotNil(t, refused, body)
		require.Equal(t, []web.Field{{Code: web.CodeWrongType, Pointer: "#/" + member, Detail: want.detail}}, refused.Fields)
	}
	for _, hidden := range []string{"Hidden", "-"} {
		_, refused := decoded(`{` + good + `,"` + hidden + `":"x"}`)
		require.NotNil(t, refused)
		require.Equal(t, web.CodeUnknownMember, refused.Code)
	}
}
