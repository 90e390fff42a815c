package contract_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
)

const userID = "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10"

var at = time.Date(2026, 11, 20, 9, 30, 0, 123456000, time.UTC)

func registered(data string) event.Event {
	d := contract.UserRegistered
	return event.Event{Type: d.Type, Source: d.Source, Key: userID, Data: []byte(data)}
}

func payload(member, value string) string {
	members := map[string]string{
		"user_id": `"` + userID + `"`, "email": `"ada@example.org"`, "name": `"Ada"`,
		"registered_at": `"2026-11-20T09:30:00Z"`,
	}
	members[member] = value
	var parts []string
	for name, text := range members {
		if text != "" {
			parts = append(parts, `"`+name+`":`+text)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestValidateAccepts(t *testing.T) {
	t.Parallel()
	c := load(t)
	for name, data := range map[string]string{
		"plain":                  payload("name", `"Ada"`),
		"unknown member":         payload("nickname", `"Countess"`),
		"nested unknown member":  payload("more", `{"a":[1,{"b":null}],"c":true}`),
		"large unknown number":   payload("count", `1e400000`),
		"integer beyond int64":   payload("count", `9223372036854775808`),
		"surrounding blanks":     " \n" + payload("name", `"Ada"`) + "\t ",
		"escaped backslash-u":    payload("name", `"\\u0000"`),
		"paired surrogates":      payload("name", `"\ud83d\udc69"`),
		"200 characters":         payload("name", `"`+strings.Repeat("é", 200)+`"`),
		"offset and nanoseconds": payload("registered_at", `"2026-11-20T09:30:00.123456789+05:30"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, c.Validate(registered(data)))
			_, err := contract.UserRegistered.Decode(registered(data))
			require.NoError(t, err, "what fits the schema must fit the struct")
		})
	}
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	c := load(t)
	const secret = "s3cret"
	for name, test := range map[string]struct {
		data string
		code event.Code
	}{
		"empty":                 {"", event.CodeInvalidJSON},
		"not JSON":              {secret, event.CodeInvalidJSON},
		"two values":            {payload("name", `"x"`) + payload("name", `"x"`), event.CodeInvalidJSON},
		"byte order mark":       {"\ufeff" + payload("name", `"x"`), event.CodeInvalidJSON},
		"member twice":          {payload("x", `1,"x":2`), event.CodeInvalidJSON},
		"member twice, nested":  {payload("x", `{"`+secret+`":1,"`+secret+`":2}`), event.CodeInvalidJSON},
		"member twice, escaped": {payload("x", `1,"\u0078":2`), event.CodeInvalidJSON},
		"invalid UTF-8":         {payload("name", "\"\xff"+secret+`"`), event.CodeInvalidJSON},
		"lone surrogate":        {payload("name", `"\ud800"`), event.CodeInvalidJSON},
		"NUL":                   {payload("name", `"a\u0000b"`), event.CodeSchemaViolation},
		"nested arrays":         {payload("x", strings.Repeat("[", 20_000)), event.CodeInvalidJSON},
		"null":                  {`null`, event.CodeSchemaViolation},
		"array":                 {`[]`, event.CodeSchemaViolation},
		"no members":            {`{}`, event.CodeSchemaViolation},
		"name missing":          {payload("name", ""), event.CodeSchemaViolation},
		"name in another case":  {strings.Replace(payload("x", "1"), `"name"`, `"Name"`, 1), event.CodeSchemaViolation},
		"name null":             {payload("name", `null`), event.CodeSchemaViolation},
		"name empty":            {payload("name", `""`), event.CodeSchemaViolation},
		"name too long":         {payload("name", `"`+strings.Repeat("x", 201)+`"`), event.CodeSchemaViolation},
		"name a number":         {payload("name", `1e400000`), event.CodeSchemaViolation},
		"name an object":        {payload("name", `{"`+secret+`":"`+secret+`"}`), event.CodeSchemaViolation},
		"email not one":         {payload("email", `"`+secret+`"`), event.CodeSchemaViolation},
		"id in upper case":      {payload("user_id", `"`+strings.ToUpper(userID)+`"`), event.CodeSchemaViolation},
		"id as urn":             {payload("user_id", `"urn:uuid:`+userID+`"`), event.CodeSchemaViolation},
		"30 February":           {payload("registered_at", `"2026-02-30T00:00:00Z"`), event.CodeSchemaViolation},
		"no zone":               {payload("registered_at", `"2026-02-03T00:00:00"`), event.CodeSchemaViolation},
		"leap second":           {payload("registered_at", `"2016-12-31T23:59:60Z"`), event.CodeSchemaViolation},
		"lower-case z":          {payload("registered_at", `"2026-02-03t00:00:00z"`), event.CodeSchemaViolation},
		"one digit of an hour":  {payload("registered_at", `"2026-02-03T1:00:00Z"`), event.CodeSchemaViolation},
		"comma":                 {payload("registered_at", `"2026-02-03T01:00:00,5Z"`), event.CodeSchemaViolation},
		"offset of a day":       {payload("registered_at", `"2026-02-03T01:00:00+24:00"`), event.CodeSchemaViolation},
		"infinity":              {payload("registered_at", `"infinity"`), event.CodeSchemaViolation},
		"year 294277":           {payload("registered_at", `"294277-01-01T00:00:00Z"`), event.CodeSchemaViolation},
		"another user": {
			payload("user_id", `"01980a5c-52d4-7c3b-9a44-0d6f3f1f2a11"`), event.CodeSubjectMismatch,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.Validate(registered(test.data))
			var broken *event.ContractError
			require.ErrorAs(t, err, &broken)
			require.Equal(t, test.code, broken.Code, broken.Detail)
			require.True(t, broken.Permanent())
			require.Equal(t, string(test.code), broken.ErrorCode())
			require.NotContains(t, err.Error(), secret, "the error repeats the payload")
		})
	}
}

func TestValidateRefusesAnUnknownType(t *testing.T) {
	t.Parallel()
	e := registered(payload("x", "1"))
	e.Type = "com.example.customer.user-registered.v2"
	var broken *event.ContractError
	require.ErrorAs(t, load(t).Validate(e), &broken)
	require.Equal(t, event.CodeUnknownType, broken.Code)
}

func TestValidateNamesThePlaces(t *testing.T) {
	t.Parallel()
	data := `{"user_id":7,"email":"x","name":"Ada"}`
	err := load(t).Validate(registered(data))
	require.EqualError(t, err, "check event: schema_violation: /email has the wrong format, /registered_at is missing, "+
		"/user_id has the wrong type")
}

func TestDecodeRefusesWhatDoesNotFitTheStruct(t *testing.T) {
	t.Parallel()
	_, err := contract.UserRegistered.Decode(registered(`{"name":{"s3cret":"s3cret"}}`))
	require.EqualError(t, err, `the payload does not decode into domain.UserRegistered: "/name" is of another type`)
}

func TestAnEventIsText(t *testing.T) {
	t.Parallel()
	_, err := event.New(contract.UserRenamed, 2, domain.UserRenamed{UserID: userID, Name: "\xff", RenamedAt: at})
	require.ErrorContains(t, err, "encode event com.example.customer.user-renamed.v1")
	require.NotContains(t, err.Error(), "\xff")
}

// encoding/json accepts NAME for name, which no schema has seen.
func TestDecodeComparesNamesLetterByLetter(t *testing.T) {
	t.Parallel()
	e := registered(payload("NAME", `"Eve\u0007"`))
	require.NoError(t, load(t).Validate(e), "an unknown member is allowed")
	read, err := contract.UserRegistered.Decode(e)
	require.NoError(t, err)
	require.EqualValues(t, "Ada", read.Name)
}

func TestNamesOnTheWire(t *testing.T) {
	t.Parallel()
	names := func(d event.Declaration) []string { return []string{d.Type, d.Topic, d.Source, d.DataSchema} }
	require.Equal(t, []string{
		"com.example.customer.user-registered.v1", "customer.users.v1", "/twinbox/customer",
		"https://example.com/twinbox/events/user-registered.v1.json",
	}, names(contract.UserRegistered.Declaration))
	require.Equal(t, "com.example.customer.user-renamed.v1", contract.UserRenamed.Type)
	require.Equal(t, "com.example.customer.email-verified.v1", contract.EmailVerified.Type)
	require.Equal(t, []string{
		"com.example.notification.verification-email-sent.v1", "notification.mails.v1", "/twinbox/notification",
		"https://example.com/twinbox/events/verification-email-sent.v1.json",
	}, names(contract.VerificationEmailSent.Declaration))
}
