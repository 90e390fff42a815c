package main

import (
	"fmt"
	"go/doc"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// serviceName is a name that can be a package, a role, a container and a word of a topic, as it is.
var serviceName = regexp.MustCompile(`^[a-z][a-z0-9]{1,19}$`)

// imported are the packages that the templates know by these names.
var imported = strings.Fields(`
	audit cloudevent config context contract contracttest domain errors eventing frame inbox inboxtest internal kafka
	kafkatest lease main migrations net ops os outbox pgtest pgx pgxpool require service services test testing time
	vendor waittest`)

// reservedBySQL are the words that PostgreSQL and standard SQL reserve, and those that a table may not be called by.
var reservedBySQL = strings.Fields(`
	all analyse analyze and any array as asc asymmetric authorization between binary both case cast check collate collation
	column commit concurrently constraint create cross current default deferrable desc distinct do else end except exists
	false fetch for foreign freeze from full function grant group having ilike in initially inner insert intersect into is
	isnull join lateral leading left like limit localtime localtimestamp merge natural not notnull null offset on only or
	order outer overlaps placing primary procedure public references returning revoke right rollback row rows schema select
	session set similar some symmetric system table tablesample then to trailing trigger true union unique update user
	users using values variadic verbose view when where window with`)

// checkName refuses what could not be compiled, could not be a role or would hide something.
func checkName(name string) error {
	switch {
	case !serviceName.MatchString(name):
		return fmt.Errorf("%q is no name for a service: 2 to 20 lower-case letters and digits, a letter first", name)
	case token.IsKeyword(name) || doc.IsPredeclared(name):
		return fmt.Errorf("%q is a word of Go: the package could not have it as its name", name)
	case slices.Contains(imported, name):
		return fmt.Errorf("%q is the name of a package that services import: choose another", name)
	case slices.Contains(reservedBySQL, name):
		return fmt.Errorf("%q is a word of SQL: every statement would have to quote it", name)
	}
	return nil
}

// eventName is an event's in the form of Go: two words or more, no letters in capitals side by side.
var eventName = regexp.MustCompile(`^([A-Z][a-z0-9]+){2,}$`)

// eventOf reads an event's name in any form: PointsGranted, points-granted, "Points granted".
func eventOf(given string) (string, error) {
	var name strings.Builder
	for _, word := range strings.FieldsFunc(given, func(r rune) bool { return r == ' ' || r == '-' || r == '_' }) {
		name.WriteString(upperFirst(word))
	}
	if !eventName.MatchString(name.String()) || len(name.String()) > 30 {
		return "", fmt.Errorf("%q is no name for an event: two words or more, what it is about and what happened, such as "+
			"PointsGranted; capitals begin words and do nothing else", given)
	}
	return name.String(), nil
}

// split is a name in the form of Go as its words, in lower case.
func split(name string) (list []string) {
	for i, r := range name {
		if i == 0 || unicode.IsUpper(r) {
			list = append(list, "")
		}
		list[len(list)-1] += string(unicode.ToLower(r))
	}
	return list
}

func kebab(name string) string { return strings.Join(split(name), "-") }
func snake(name string) string { return strings.Join(split(name), "_") }
func words(name string) string { return strings.Join(split(name), " ") }

func upperFirst(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
func lowerFirst(word string) string { return strings.ToLower(word[:1]) + word[1:] }
