package config

import (
	"errors"
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

// MaskURL shows a connection URL without the password before the host, and without parameters that may hold one. What
// is no URL is masked as a whole.
func MaskURL(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return ""
	case err != nil || u.Host == "":
		return mask
	case strings.Contains(u.RawQuery, "password") || strings.Contains(u.RawQuery, "%"):
		u.RawQuery = mask
	}
	return strings.ReplaceAll(u.Redacted(), "xxxxx", mask) // net/url's own mark
}

// largestFile is more than any secret needs and little enough to read without a thought.
const largestFile = 64 << 10

// readSecret reads a secret from a file, without one line end at its end: editors and `echo` put it there.
func readSecret(path string) (string, error) {
	info, err := os.Stat(path) // before the file is opened: a named pipe would make that wait for a writer
	if err != nil || !info.Mode().IsRegular() || info.Size() > largestFile {
		return "", errors.New("is not a regular file of at most 64 KiB that the service can read")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", errors.New("the file cannot be read")
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r"), nil
}
