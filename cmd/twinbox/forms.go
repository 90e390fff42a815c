package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/twinbox/internal/ops/admin/adminapi"
)

const milliseconds = "2006-01-02T15:04:05.000Z"

func show(of item, path, form string, wide bool) string {
	text, at := of.text(path), of.time(path)
	switch form {
	case "age", "due":
		if wide || at.IsZero() {
			return moment(at)
		}
		return adminapi.Age(time.Since(at).Abs())
	case "time":
		return moment(at)
	case "ms":
		return at.UTC().Format(milliseconds)
	case "seconds":
		if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 {
			return adminapi.Age(time.Duration(seconds * float64(time.Second)))
		}
		return ""
	case "type": // without the names before it and its version
		if parts := strings.Split(text, "."); !wide && len(parts) > 1 {
			return parts[len(parts)-2]
		}
	case "bytes":
		return string(of.bytes(path))
	case "payload":
		return cmp.Or(string(of.bytes(path)), "(left out: 8 MiB are shown)")
	case "json":
		if encoded, err := json.Marshal(of.member(path)); text != "" && err == nil {
			return string(encoded)
		}
	case "counts":
		var parts []string
		numbers, _ := of.member(path).(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(numbers)) {
			parts = append(parts, fmt.Sprintf("%v %s", numbers[name], name))
		}
		return strings.Join(parts, ", ")
	case "known":
		return cmp.Or(text, "unknown")
	case "paused":
		return map[bool]string{true: "paused", false: "running"}[of.isSet(path)]
	case "yes":
		return map[bool]string{true: "yes", false: "no"}[of.isSet(path)]
	}
	if compose := composed[form]; compose != nil {
		return compose(of, text)
	}
	return text
}

var composed = map[string]func(of item, text string) string{
	"relay":   relayOf,
	"state":   stateOf,
	"next":    nextStep,
	"record":  func(of item, _ string) string { return recordOf(of) },
	"place":   func(of item, text string) string { return of.text("service") + "@" + text },
	"waiting": waitingOf,
	"deed":    deedOf,
	"who":     whoOf,
	"outcome": func(of item, text string) string { return strings.TrimSuffix(text+", "+of.text("cause"), ", ") },
	"where":   whereOf,
	"detail":  detailOf,
}

// An event that came without a broker has no record.
func recordOf(of item) string {
	if of.text("topic") == "" || of["offset"] == nil {
		return ""
	}
	return fmt.Sprintf("%s[%s]@%s", of.text("topic"), of.text("partition"), of.text("offset"))
}

func relayOf(of item, _ string) string {
	switch {
	case of["refused"] != nil: // between two looks it does not lead
		return "refuses"
	case of["leading"] != true:
		return "no leader"
	case of["paused"] != nil:
		return "paused"
	}
	return "leading"
}

func waitingOf(of item, text string) string {
	if of["waiting_more"] == true {
		return text + " or more"
	}
	return text
}

func deedOf(of item, text string) string {
	if code := of.text("detail.code"); code != "" {
		return fmt.Sprintf("%s (%s: %s)", text, of.text("detail.outcome"), code)
	}
	if after := of.text("after"); after == "started" || after == "failed" {
		return text + " (" + after + ")"
	}
	return text
}

// A record is of its topic, whichever service read it first.
func whoOf(of item, text string) string {
	if of.text("station") == "record" {
		return of.text("topic")
	}
	return cmp.Or(of.text("consumer"), text)
}

func whereOf(of item, _ string) string {
	switch of.text("station") {
	case "outbox":
		return of.text("service") + "@" + of.text("position")
	case "dead_letter":
		return of.text("service") + "/" + of.text("subject")
	}
	return cmp.Or(of.text("subject"), recordOf(of))
}

func detailOf(of item, text string) string {
	switch station := of.text("station"); {
	case text == "" && station == "request" && of.isSet("correlation_id"):
		return "correlation " + of.text("correlation_id")
	case text == "" && station == "outbox" && of.isSet("version"):
		return "version " + of.text("version") + " of " + of.text("key")
	}
	return text
}
