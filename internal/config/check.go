package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	longestDuration = 10 * 365 * 24 * time.Hour // when no max is given: room for arithmetic without overflow
	longestText     = 4096                      // bytes, when no max is given
)

// plainInteger is an integer as people write it: no plus sign, no leading zero (octal?), no 1_000, no 1e3, no 0x10.
var plainInteger = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// typeOf is what a variable holds, in words; see [Setting]. Empty: no type of a setting.
func typeOf(value reflect.Value) string {
	switch t := value.Type(); {
	case t == reflect.TypeFor[Secret]():
		return "secret"
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t == reflect.TypeFor[[]string](), t == reflect.TypeFor[[]netip.Prefix]():
		return "list"
	case value.CanInt():
		return "integer"
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.String:
		return "text"
	}
	return ""
}

// check says what is wrong with the text; what is not, env converts. Of a list each bad entry is a problem.
func (f *field) check(text string) []Problem {
	shape := text
	if f.format == formatPEM {
		shape = strings.Join(strings.Fields(text), " ") // the one kind of value that has lines
	}
	code, why := checkShape(shape)
	switch {
	case code != "" && (f.Type != "list" || code == CodeEmpty || code == CodeQuoted):
		return f.problem(code, "%s", why)
	case f.Type == "list":
		return f.checkList(text)
	case f.Type == "duration":
		return f.checkDuration(text)
	case f.Type == "integer":
		return f.checkInteger(text)
	case f.Type != "bool":
		return f.checkText(text)
	case text != "true" && text != "false":
		return f.problem(CodeInvalidBool, "%.32q is neither true nor false", text)
	}
	return nil
}

// checkShape finds mistakes that a value of any type may have, usually from the way it got into the environment.
func checkShape(text string) (Code, string) {
	switch {
	case text == "":
		return CodeEmpty, "set, but to nothing; unset it or give it a value"
	case len(text) > 1 && text[0] == text[len(text)-1] && (text[0] == '"' || text[0] == '\''):
		return CodeQuoted, "quotes around the value; they would become part of it"
	case !utf8.ValidString(text):
		return CodeNotText, "not valid UTF-8"
	case strings.TrimFunc(text, unicode.IsSpace) != text:
		return CodeSurroundingSpace, "blanks or line ends around the value"
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return CodeNotText, "control, format or unassigned characters inside the value; some of them do not show"
	}
	return "", ""
}

// bounds are what the tags min and max say, or else those of all values of the type.
func bounds[T any](f *field, read func(string) (T, error), lowest, highest T) (T, T) {
	for bound, text := range map[*T]string{&lowest: f.min, &highest: f.max} {
		if text == "" {
			continue
		}
		value, err := read(text)
		if err != nil {
			panic("config: a bound of " + f.Variable + ": " + err.Error())
		}
		*bound = value
	}
	return lowest, highest
}

func (f *field) checkDuration(text string) []Problem {
	lowest, highest := bounds(f, time.ParseDuration, 1, longestDuration)
	value, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return f.problem(CodeInvalidDuration, "%.32q is no duration; write 300ms, 5s, 2m or 24h", text)
	case value < lowest || value > highest:
		return f.problem(CodeOutOfRange, "%.32q is not within %s and %s",
			text, showDuration(lowest), showDuration(highest))
	}
	return nil
}

func (f *field) checkInteger(text string) []Problem {
	read := func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }
	lowest, highest := bounds(f, read, 0, 1<<(f.value.Type().Bits()-1)-1)
	value, err := read(text)
	switch {
	case !plainInteger.MatchString(text):
		return f.problem(CodeInvalidInteger, "%.32q is no decimal number; write 1000, not 1_000, 1e3 or 0x3e8", text)
	case err != nil || value < lowest || value > highest:
		return f.problem(CodeOutOfRange, "%.32q is not within %d and %d", text, lowest, highest)
	}
	return nil
}

func (f *field) checkText(text string) []Problem {
	shortest, longest := bounds(f, strconv.Atoi, 1, longestText)
	switch {
	case len(text) < shortest:
		return f.problem(CodeTooShort, "%d bytes, at least %d", len(text), shortest)
	case len(text) > longest:
		return f.problem(CodeTooLong, "%d bytes, at most %d", len(text), longest)
	case len(f.oneOf) > 0 && !slices.Contains(f.oneOf, strings.ToLower(text)):
		return f.problem(CodeNotAllowed, "%.32q is none of %s", text, strings.Join(f.oneOf, ", "))
	}
	if why := f.format.Check(text); why != "" {
		return f.problem(formats[f.format].code, "%s", why)
	}
	return nil
}

// checkList names each bad entry by its place, counted from 1, not by its text: an operator may have put a password
// there. Entries that differ in the case of letters alone are the same: all are names of hosts, addresses or networks.
func (f *field) checkList(text string) (problems []Problem) {
	entries := strings.Split(text, ",")
	for i, entry := range entries {
		code, why := checkShape(entry)
		switch {
		case entry == "":
			code, why = CodeEmptyEntry, "empty"
		case strings.ContainsFunc(entry, unicode.IsSpace):
			code, why = CodeSurroundingSpace, "contains blanks; separate entries by commas alone"
		case slices.ContainsFunc(entries[:i], func(other string) bool { return strings.EqualFold(entry, other) }):
			code, why = CodeDuplicateEntry, "repeats an earlier one"
		case code == "":
			if why = f.format.Check(entry); why != "" {
				code = formats[f.format].code
			}
		}
		if code != "" {
			problems = append(problems, f.problem(code, "entry %d of %d: %s", i+1, len(entries), why)...)
		}
	}
	return problems
}

// problem shows at most the first 32 characters of a value (%.32q), and only of one that cannot be a secret.
func (f *field) problem(code Code, detail string, args ...any) []Problem {
	return []Problem{{Variable: f.Variable, Code: code, Detail: fmt.Sprintf(detail, args...)}}
}
