package domain

import (
	"net/mail"
	"strings"
	"unicode/utf8"
)

const (
	maxEmailBytes     = 254 // RFC 5321: a path is 256 with its angle brackets
	maxLocalPartBytes = 64  // RFC 5321, 4.5.3.1.1
	maxLabelBytes     = 63  // RFC 1035
)

// Email is an address that mail can be sent to, with its domain in lower case. Only [ParseEmail] makes one.
type Email string

// ParseEmail accepts one plain address with a dotted ASCII domain and refuses everything else that net/mail lets
// through: display names, comments, quoted local parts, address literals, surrounding blanks, control characters.
// Internationalised addresses are refused too: they need SMTPUTF8 on the whole way, which no link here promises.
func ParseEmail(text string) (Email, error) {
	reject := func(why string) (Email, error) {
		return "", &Error{CodeInvalidEmail, "email", why}
	}
	switch {
	case text == "":
		return reject("is empty")
	case len(text) > maxEmailBytes:
		return reject("is longer than 254 bytes")
	case !isPrintableASCII(text):
		return reject("has characters other than printable ASCII")
	}
	parsed, err := mail.ParseAddress(text)
	if err != nil || parsed.Name != "" || parsed.Address != text {
		return reject("is not one plain address")
	}
	local, host, _ := strings.Cut(text, "@")
	switch {
	case strings.ContainsAny(local, `"\`):
		return reject("has a quoted local part")
	case len(local) > maxLocalPartBytes:
		return reject("has more than 64 bytes before the @")
	case !isHostname(host):
		return reject("has no valid domain")
	}
	return Email(local + "@" + strings.ToLower(host)), nil
}

// Key is the form in which two addresses are the same person's: mail servers may tell Ada@ from ada@, people do not.
func (e Email) Key() string { return strings.ToLower(string(e)) }

// Mailbox is where mail to the address is most likely read: many servers deliver ada+news@ and a.da@ to ada@, and
// Google's goes by two names. It is a guess, good for counting and too coarse for an identity: elsewhere a.da@ is
// another person.
func (e Email) Mailbox() string {
	local, host, _ := strings.Cut(e.Key(), "@")
	if name, _, tagged := strings.Cut(local, "+"); tagged && name != "" {
		local = name
	}
	if host == "googlemail.com" {
		host = "gmail.com"
	}
	return strings.ReplaceAll(local, ".", "") + "@" + host
}

func isPrintableASCII(s string) bool {
	for _, r := range s {
		if r <= ' ' || r >= utf8.RuneSelf-1 {
			return false
		}
	}
	return true
}

// isHostname wants at least two labels of letters, digits and inner hyphens, the last one not all digits.
func isHostname(host string) bool {
	labels := strings.Split(host, ".")
	if len(labels) < 2 || strings.Trim(labels[len(labels)-1], "0123456789") == "" {
		return false
	}
	for _, label := range labels {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

func isLabel(label string) bool {
	if label == "" || len(label) > maxLabelBytes || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for _, c := range []byte(label) {
		isAlnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !isAlnum && c != '-' {
			return false
		}
	}
	return true
}
