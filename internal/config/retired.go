package config

import (
	"maps"

	"github.com/caarlos0/env/v11"
)

// retired are the variables that an earlier release read, and what became of them. One that is still set is no mistake
// that keeps a service from starting.
var retired = map[string]string{
	"INBOX_GAP_WAIT":   "an event whose predecessor is missing is parked immediately",
	"KAFKA_EDGE":       "there is one way to Kafka, on watermill-kafka",
	"MAIL_CLAIM_BATCH": "a worker claims the row that it works on",
}

// Retired returns the variables that are set and that only an earlier release read, with what became of them.
func Retired(environ []string) map[string]string {
	found := maps.Clone(retired)
	texts := env.ToMap(environ)
	maps.DeleteFunc(found, func(name, _ string) bool { _, set := texts[name]; return !set })
	return found
}
