package config

import (
	"fmt"
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

// parse checks the text and stores it in the field's place, which keeps its value when there are problems. Of a list
// each bad entry is one.
func (f *field) parse(text string) []Problem {
	if f.value.Type() == listType && text != "" && !quoted(text) {
		return f.parseList(text)
	}
	if p := f.parseOne(text); p != nil {
		return []Problem{*p}
	}
	return nil
}

func (f *field) parseOne(text string) *Problem {
	if code, why := checkShape(text); code != "" {
		return f.problem(code, "%s", why)
	}
	switch {
	case f.value.Type() == durationType:
		return f.parseDuration(text)
	case f.value.Kind() == reflect.Bool:
		return f.parseBool(text)
	case f.value.CanInt():
		return f.parseInteger(text)
	case f.value.Kind() == reflect.String:
		return f.parseText(text)
	}
	panic(fmt.Sprintf("config: %s: type %s is not supported", f.variable, f.value.Type()))
}

// checkShape finds mistakes that a value of any type may have, usually from the way it got into the environment.
func checkShape(text string) (Code, string) {
	switch {
	case text == "":
		return CodeEmpty, "set, but to nothing; unset it or give it a value"
	case !utf8.ValidString(text):
		return CodeNotText, "not valid UTF-8"
	case strings.TrimFunc(text, unicode.IsSpace) != text:
		return CodeSurroundingSpace, "blanks or line ends around the value"
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return CodeNotText, "control, format or unassigned characters inside the value; some of them do not show"
	case quoted(text):
		return CodeQuoted, "quotes around the value; they would become part of it"
	}
	return "", ""
}

func quoted(text string) bool {
	first, last := text[0], text[len(text)-1]
	return len(text) > 1 && first == last && (first == '"' || first == '\'')
}

func (f *field) parseDuration(text string) *Problem {
	value, err := time.ParseDuration(text)
	if err != nil {
		return f.problem(CodeInvalidDuration, "%s is no duration; write 300ms, 5s, 2m or 24h", echo(text))
	}
	lowest, highest := time.Duration(1), longestDuration
	if f.min != "" {
		lowest = must(time.ParseDuration(f.min))
	}
	if f.max != "" {
		highest = must(time.ParseDuration(f.max))
	}
	if value < lowest || value > highest {
		return f.problem(CodeOutOfRange, "%s is not within %s and %s",
			echo(text), showDuration(lowest), showDuration(highest))
	}
	f.value.SetInt(int64(value))
	return nil
}

func (f *field) parseBool(text string) *Problem {
	if text != "true" && text != "false" {
		return f.problem(CodeInvalidBool, "%s is neither true nor false", echo(text))
	}
	f.value.SetBool(text == "true")
	return nil
}

func (f *field) parseInteger(text string) *Problem {
	if !plainInteger.MatchString(text) {
		return f.problem(CodeInvalidInteger, "%s is no decimal number; write 1000, not 1_000, 1e3 or 0x3e8", echo(text))
	}
	lowest, highest := int64(0), int64(1)<<(f.value.Type().Bits()-1)-1
	if f.min != "" {
		lowest = must(strconv.ParseInt(f.min, 10, 64))
	}
	if f.max != "" {
		highest = must(strconv.ParseInt(f.max, 10, 64))
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil || value < lowest || value > highest {
		return f.problem(CodeOutOfRange, "%s is not within %d and %d", echo(text), lowest, highest)
	}
	f.value.SetInt(value)
	return nil
}

func (f *field) parseText(text string) *Problem {
	if p := f.checkLength(text); p != nil {
		return p
	}
	if len(f.oneOf) > 0 {
		i := slices.IndexFunc(f.oneOf, func(word string) bool { return strings.EqualFold(word, text) })
		if i < 0 {
			return f.problem(CodeNotAllowed, "%s is none of %s", echo(text), strings.Join(f.oneOf, ", "))
		}
		text = f.oneOf[i] // DEBUG is debug
	}
	if code, why := f.format.check(text); code != "" {
		return f.problem(code, "%s", why)
	}
	f.value.SetString(text)
	return nil
}

func (f *field) checkLength(text string) *Problem {
	lowest, highest := 1, longestText
	if f.min != "" {
		lowest = must(strconv.Atoi(f.min))
	}
	if f.max != "" {
		highest = must(strconv.Atoi(f.max))
	}
	switch {
	case len(text) < lowest:
		return f.problem(CodeTooShort, "%d bytes, at least %d", len(text), lowest)
	case len(text) > highest:
		return f.problem(CodeTooLong, "%d bytes, at most %d", len(text), highest)
	}
	return nil
}

// parseList names each bad entry by its place, counted from 1, not by its text: an operator may have put a password
// there.
func (f *field) parseList(text string) (problems []Problem) {
	entries := strings.Split(text, ",")
	for i, entry := range entries {
		if code, why := f.checkEntry(entry, entries[:i]); code != "" {
			problems = append(problems, *f.problem(code, "entry %d of %d: %s", i+1, len(entries), why))
		}
	}
	if problems == nil {
		f.value.Set(reflect.ValueOf(entries))
	}
	return problems
}

func (f *field) checkEntry(entry string, before []string) (Code, string) {
	switch {
	case entry == "":
		return CodeEmptyEntry, "empty"
	case strings.ContainsFunc(entry, unicode.IsSpace):
		return CodeSurroundingSpace, "contains blanks; separate entries by commas alone"
	case slices.ContainsFunc(before, func(other string) bool { return f.format.same(entry, other) }):
		return CodeDuplicateEntry, "repeats an earlier one"
	}
	if code, why := checkShape(entry); code != "" {
		return code, why
	}
	return f.format.check(entry)
}

func (f *field) problem(code Code, detail string, args ...any) *Problem {
	return &Problem{Variable: f.variable, Code: code, Detail: fmt.Sprintf(detail, args...)}
}

// echo shows a short value in a problem. Only values that cannot be secrets are shown.
func echo(text string) string {
	const longest = 32
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "..."
	}
	return strconv.Quote(text)
}

// must unpacks what a tag holds; a tag that cannot be read is the program's mistake.
func must[T any](value T, err error) T {
	if err != nil {
		panic("config: tag: " + err.Error())
	}
	return value
}
