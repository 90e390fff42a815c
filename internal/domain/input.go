package domain

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Code is the stable name of a broken rule, for clients.
type Code string

// The codes of an [Error]. Only events have the last two.
const (
	CodeInvalidEmail    Code = "invalid_email"
	CodeInvalidName     Code = "invalid_name"
	CodeInvalidUserID   Code = "invalid_user_id"
	CodeUserNotFound    Code = "user_not_found"
	CodeEmailTaken      Code = "email_taken"
	CodeVersionMismatch Code = "version_mismatch"
	CodeTokenInvalid    Code = "token_invalid"
	CodeTokenExpired    Code = "token_expired"
	CodeInvalidTime     Code = "invalid_time"
	CodeInvalidMailID   Code = "invalid_mail_id"
)

// Error is a broken rule, for the client to fix. It never repeats the input, which may be personal.
type Error struct {
	Code    Code
	Field   string // the input it is about; may be empty
	Message string
}

func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("%s: %s: %s", e.Code, e.Field, e.Message)
}

// Is compares codes, for errors.Is.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// UserID is a UUID in its canonical lower-case form. It is the aggregate id of every user event.
type UserID string

var canonicalUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// ParseUserID accepts the canonical form alone.
func ParseUserID(text string) (UserID, error) {
	return UserID(text), checkUUID(CodeInvalidUserID, "id", text)
}

func checkUUID[T ~string](code Code, field string, id T) error {
	if !canonicalUUID.MatchString(string(id)) || id == "00000000-0000-0000-0000-000000000000" {
		return &Error{code, field, "is not a lower-case UUID"}
	}
	return nil
}

const (
	maxEmailBytes     = 254 // RFC 5321: a path is 256 with its angle brackets
	maxLocalPartBytes = 64  // RFC 5321, 4.5.3.1.1

	localWord = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+" // RFC 5322, 3.2.3: atext
	label     = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?`
	topLevel  = `[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?`
)

var plainAddress = regexp.MustCompile(
	`^(` + localWord + `(?:\.` + localWord + `)*)@((?:` + label + `\.)+` + topLevel + `)$`)

// Email is an address with its domain in lower case. Only [ParseEmail] makes one.
type Email string

// ParseEmail accepts one plain ASCII address with a dotted domain: no quoted local part, no address literal, no
// internationalised address.
func ParseEmail(text string) (Email, error) {
	if len(text) > maxEmailBytes {
		return "", &Error{CodeInvalidEmail, "email", "is longer than 254 bytes"}
	}
	parts := plainAddress.FindStringSubmatch(text)
	switch {
	case parts == nil:
		return "", &Error{CodeInvalidEmail, "email", "is not one plain address in ASCII, such as ada@example.org"}
	case len(parts[1]) > maxLocalPartBytes:
		return "", &Error{CodeInvalidEmail, "email", "has more than 64 bytes before the @"}
	}
	return Email(parts[1] + "@" + strings.ToLower(parts[2])), nil
}

// Key returns the form in which two addresses are the same person's.
func (e Email) Key() string { return strings.ToLower(string(e)) }

// Mailbox guesses who reads the address, for counting: many servers deliver ada+news@ and a.da@ to ada@.
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

const maxNameRunes = 200

// Name is a user's name: any script, one line. Only [ParseName] makes one.
type Name string

// ParseName trims surrounding blanks and accepts 1 to 200 visible characters and spaces, and joiners in scripts that
// need them. Markup passes: pages escape names.
func ParseName(text string) (Name, error) {
	name, wrong := strings.TrimSpace(text), ""
	switch {
	case !utf8.ValidString(name):
		wrong = "is not valid UTF-8"
	case name == "":
		wrong = "is empty"
	case utf8.RuneCountInString(name) > maxNameRunes:
		wrong = "is longer than 200 characters"
	default:
		wrong = wrongCharacters(name)
	}
	if wrong != "" {
		return "", &Error{CodeInvalidName, "name", wrong}
	}
	return Name(name), nil
}

const joiners = "\u200c\u200d" // the zero-width non-joiner and joiner

// wrongCharacters refuses U+FFFD, too: the sign of bytes that were lost earlier.
func wrongCharacters(name string) string {
	var before rune
	forbidden, visible := false, false
	for _, r := range name {
		switch {
		case strings.ContainsRune(joiners, r):
			forbidden = forbidden || !takesJoiner(before)
		case !unicode.IsGraphic(r), r == utf8.RuneError, unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
			forbidden = true
		case !unicode.IsSpace(r) && r != '\u2800' && !unicode.Is(unicode.Variation_Selector, r):
			visible = true
		}
		before = r
	}
	switch {
	case forbidden:
		return "has control, format or invisible characters"
	case !visible:
		return "has no visible character"
	}
	return ""
}

// takesJoiner excludes three scripts in which a joiner could only hide.
func takesJoiner(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.So, unicode.Sk) &&
		!unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic)
}
