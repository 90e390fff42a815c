package config

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
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

// Format writes the mask for every verb. Without it a verb that does not fit text (%d) would print the value in
// fmt's complaint.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// MarshalText returns the mask, to encoders and loggers.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MaskURL shows a connection URL without what must stay unknown: the password before the host, and every parameter
// that may hold one. What is no URL is masked as a whole.
func MaskURL(raw string) string {
	if raw == "" {
		return ""
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return mask
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return mask
	}
	const redacted = "xxxxx" // net/url's own, which is not escaped
	for name := range query {
		if name == "password" || name == "sslpassword" {
			query.Set(name, redacted)
		}
	}
	u.RawQuery = query.Encode()
	return strings.ReplaceAll(u.Redacted(), redacted, mask)
}

// largestFile is more than any secret needs and little enough to read without a thought.
const largestFile = 64 << 10

// readFile reads the secret from a file. One line end at its end is taken off, because editors and `echo` put it
// there; everything else counts as part of the secret and is checked like it.
func (f *field) readFile(path string) (text string, problems []Problem) {
	inFile := *f
	inFile.Variable = f.fileVariable()
	if path == "" {
		return "", inFile.problem(CodeEmpty, "set, but to nothing")
	}
	// Before opening: a named pipe would make the open wait for a writer for ever.
	switch info, err := os.Stat(path); {
	case err != nil:
		return "", inFile.problem(CodeFileUnreadable, "the file does not exist or cannot be looked at")
	case !info.Mode().IsRegular():
		return "", inFile.problem(CodeFileNotRegular, "not a regular file")
	case info.Size() > largestFile:
		return "", inFile.problem(CodeFileTooLarge, "larger than 64 KiB")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", inFile.problem(CodeFileUnreadable, "the file cannot be read")
	}
	text = strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	problems = inFile.check(text)
	for i := range problems {
		problems[i].Detail = "in the file: " + problems[i].Detail
	}
	return text, problems
}
