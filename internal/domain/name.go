package domain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxNameRunes = 200

// Name is what a user wants to be called: any script, one line. Only [ParseName] makes one.
type Name string

// ParseName trims surrounding blanks and refuses empty, over-long and invisible names. Markup is not refused: a name
// is data, and whoever shows it escapes it.
func ParseName(text string) (Name, error) {
	name := strings.TrimSpace(text)
	switch {
	case !utf8.ValidString(name):
		return "", &Error{CodeInvalidName, "name", "is not valid UTF-8"}
	case name == "":
		return "", &Error{CodeInvalidName, "name", "is empty"}
	case utf8.RuneCountInString(name) > maxNameRunes:
		return "", &Error{CodeInvalidName, "name", "is longer than 200 characters"}
	case strings.ContainsFunc(name, isUnprintable):
		return "", &Error{CodeInvalidName, "name", "has control characters"}
	case !strings.ContainsFunc(name, unicode.IsGraphic) || strings.TrimFunc(name, isInvisible) == "":
		return "", &Error{CodeInvalidName, "name", "has no visible character"}
	}
	return Name(name), nil
}

// isUnprintable names control characters, line and paragraph separators, and U+FFFD, which stands for bytes that were
// lost before they came here. Format characters stay: some scripts need joiners.
func isUnprintable(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError
}

// isInvisible names what leaves nothing on a page when there is nothing else: blanks, format characters, fillers,
// joiners, selectors of a variant, and the braille pattern without a dot. Beside a visible character they may stand.
func isInvisible(r rune) bool {
	return unicode.IsSpace(r) || r == '\u2800' ||
		unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
