package domain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxNameRunes = 200

// Name is what a user wants to be called: any script, one line. Only [ParseName] makes one.
type Name string

// ParseName trims surrounding blanks and accepts 1 to 200 characters that leave a mark on the page, and the spaces
// between them. It refuses what changes how the text around it is read or hides in it: control and format characters
// (among them the marks that turn the direction of text, and zero-width spaces), line separators, private-use and
// unassigned code points, fillers. The two joiners that some scripts need are accepted behind a character of such a
// script.
//
// Markup is not refused: a name is data, and each page escapes it. Nor are look-alikes: a name does not identify a
// user.
func ParseName(text string) (Name, error) {
	name := strings.TrimSpace(text)
	switch {
	case !utf8.ValidString(name):
		return "", &Error{CodeInvalidName, "name", "is not valid UTF-8"}
	case name == "":
		return "", &Error{CodeInvalidName, "name", "is empty"}
	case utf8.RuneCountInString(name) > maxNameRunes:
		return "", &Error{CodeInvalidName, "name", "is longer than 200 characters"}
	case hasForbiddenRune(name):
		return "", &Error{CodeInvalidName, "name", "has control, format or invisible characters"}
	case strings.TrimFunc(name, isBlank) == "":
		return "", &Error{CodeInvalidName, "name", "has no visible character"}
	}
	return Name(name), nil
}

// hasForbiddenRune looks at each character with the one before it, on which a joiner depends.
func hasForbiddenRune(name string) bool {
	var before rune
	for _, r := range name {
		if isJoiner(r) && !takesJoiner(before) || !isJoiner(r) && !isPrintable(r) {
			return true
		}
		before = r
	}
	return false
}

// isPrintable leaves out U+FFFD, which stands for bytes that were lost before they came here, and the letters and
// marks that Unicode defines to show nothing.
func isPrintable(r rune) bool {
	return unicode.IsGraphic(r) && r != utf8.RuneError && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// isJoiner names the zero-width non-joiner and joiner.
func isJoiner(r rune) bool { return r == '\u200c' || r == '\u200d' }

// takesJoiner accepts the letters, marks and emoji that a joiner changes the look of. In the three scripts named here
// it never does: there it could only hide.
func takesJoiner(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.So, unicode.Sk) &&
		!unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic)
}

// isBlank names what leaves nothing on a page when there is nothing else: spaces, joiners, selectors of a variant, and
// the braille pattern without a dot.
func isBlank(r rune) bool {
	return unicode.IsSpace(r) || isJoiner(r) || r == '\u2800' || unicode.Is(unicode.Variation_Selector, r)
}
