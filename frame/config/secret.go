package config

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
)

// mask stands where a secret's value would.
const mask = "***"

// A Secret is text that is never shown: printed with any verb, logged or encoded it is "***" (or empty when it is
// not set). [Secret.Reveal] gives the value.
//
// Not guaranteed: fmt prints the fields of a struct by reflection when they are unexported, and then asks no method.
// Keep secrets in exported fields or behind a function.
type Secret string

// Reveal returns the value. Call it where the value is used and keep the result in no struct.
func (s Secret) Reveal() string { return string(s) }

// String returns the mask.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return mask
}

// GoString returns the mask.
func (s Secret) GoString() string { return s.String() }

// Format writes the mask for every verb. Without it a verb that does not fit text (%d) would print the value in
// fmt's complaint.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// LogValue returns the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the mask.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON returns the mask.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// MaskURL shows a connection URL without what must stay unknown: the password before the host, and every parameter
// that may hold one. What is no URL is masked as a whole.
func MaskURL(raw string) string {
	if raw == "" {
		return ""
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return mask
	}
	user := ""
	if u.User != nil {
		user = url.User(u.User.Username()).String()
		if _, has := u.User.Password(); has {
			user += ":" + mask
		}
		user += "@"
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return mask
	}
	for name := range query {
		if name == "password" || name == "sslpassword" {
			query[name] = []string{mask}
		}
	}
	masked := u.Scheme + "://" + user + u.Host + u.EscapedPath()
	if len(query) > 0 {
		// Encode would escape the mask; the rest of a connection URL's parameters need no escaping to be readable.
		text, err := url.QueryUnescape(query.Encode())
		if err != nil {
			return mask
		}
		masked += "?" + text
	}
	return masked
}
