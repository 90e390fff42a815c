package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// unknown reports variables that begin like one of ours and are no settings: mostly misspelt, and then the default
// runs in production unnoticed. Our prefixes are the first words of the config's variables: OUTBOX_, KAFKA_.
func unknown(env map[string]string, list []field) []Problem {
	var names []string
	for i := range list {
		names = append(names, list[i].variable)
		if file := list[i].fileVariable(); file != "" {
			names = append(names, file)
		}
	}
	prefixes := map[string]bool{}
	for _, name := range names {
		if word, _, ok := strings.Cut(name, "_"); ok {
			prefixes[word] = true
		}
	}
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(env)) {
		word, _, ok := strings.Cut(name, "_")
		if !ok || !prefixes[word] || slices.Contains(names, name) || foreign(name, env[name]) {
			continue
		}
		detail := "nothing reads it"
		if near := nearest(name, names); near != "" {
			detail += "; did you mean " + near + "?"
		}
		problems = append(problems, Problem{Variable: name, Code: CodeUnknown, Detail: detail})
	}
	return problems
}

// injected matches what Kubernetes sets in every container for each service of the namespace: a service called
// "kafka" makes KAFKA_SERVICE_HOST, KAFKA_SERVICE_PORT_CLIENT, KAFKA_PORT, KAFKA_PORT_9092_TCP_ADDR and more.
var injected = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_[A-Z]+)?)$`)

// foreign reports whether the variable belongs to another program in spite of its first word. Kubernetes' X_PORT
// holds a URL (tcp://10.0.0.7:9092); with anything else it is a person's mistake for X_ADDR. Of OpenTelemetry's
// variables, which are often set for all programs of a machine alike, a service reads a few.
func foreign(name, value string) bool {
	return name == "HTTP_PROXY" || strings.HasPrefix(name, "OTEL_") || injected.MatchString(name) ||
		strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://")
}

// nearest returns the known name that differs least, or "" when none is near.
func nearest(name string, names []string) string {
	best, least := "", 4
	for _, candidate := range names {
		if d := distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts the single characters to insert, delete or replace until a is b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
