package config

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
)

const mask = "***"

// A Secret is printed, logged and encoded as "***", or empty if unset. Keep it in exported fields: fmt bypasses the
// methods of others.
type Secret string

// Reveal returns the value. Do not store it in a struct.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return mask
}

// Format writes the mask for every verb; fmt's complaint about a wrong verb would print the value.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MaskURL hides a connection URL's password, and parameters that may hold one. Other text becomes the mask.
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
	return strings.ReplaceAll(u.Redacted(), "xxxxx", mask) // net/url's mask
}

const largestFile = 64 << 10

// readSecret drops one line end at the end, as editors add it.
func readSecret(path string) (string, error) {
	info, err := os.Stat(path) // before it opens the file: a named pipe would block
	if err != nil || !info.Mode().IsRegular() || info.Size() > largestFile {
		return "", errors.New("is not a regular file of at most 64 KiB that the service can read")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", errors.New("the file cannot be read")
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r"), nil
}
