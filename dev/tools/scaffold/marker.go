package main

import (
	"path"
	"strings"
)

// marker is a line of a file above which lines are inserted. It is a comment in the file's language.
type marker struct {
	file, what string
	where      string // it belongs, for who has to write it anew
}

// The markers of the files that all services share; those of one service are made by its functions below.
var (
	markService   = marker{"internal/services/services.go", "services", "at the end of the list in All"}
	markTopic     = marker{definitions, "topics", "at the end of the constants of topics"}
	markSource    = marker{definitions, "sources", "at the end of the constants of sources"}
	markEvent     = marker{definitions, "events", "at the end of the definitions"}
	markListed    = marker{definitions, "declarations", "at the end of the list in All"}
	markCase      = marker{"dev/contracttest/event.go", "events", "behind the last case of made"}
	markMeant     = marker{"internal/contract/compatible_test.go", "events", "at the end of the map meant"}
	markChannel   = marker{asyncAPI, "channels", "behind the last channel"}
	markOperation = marker{asyncAPI, "operations", "behind the last operation"}
	markMessage   = marker{asyncAPI, "messages", "behind the last of components.messages"}
	markContainer = marker{compose, "containers", "behind the last service that is no example's"}
	markJobs      = marker{compose, "jobs", "at the end of what after-jobs waits for"}
	markImage     = marker{"Dockerfile", "images", "behind the last stage that is no example's"}
	markDatabase  = marker{"deploy/postgres/init.sql", "databases", "behind the last database that is no example's"}
	markLint      = marker{".golangci.yml", "services", "behind the rule of the last service"}
	markScrape    = marker{prometheus, "services", "behind the last service that is no example's"} // part: observability
)

const (
	definitions = "internal/contract/definitions.go"
	asyncAPI    = "api/asyncapi.yaml"
	compose     = "docker-compose.yml"
	prometheus  = "deploy/observability/prometheus/prometheus.yml" // part: observability
)

// markChannelMessage is that of one channel's messages.
func markChannelMessage(topic string) marker {
	return marker{asyncAPI, "messages of " + topic, "at the end of the channel's messages"}
}

func markTables(service string) marker {
	return marker{appOf(service), "tables", "at the end of the list Tables of Service"}
}

func markConsumers(service string) marker {
	return marker{appOf(service), "consumers", "at the end of what setUp joins"}
}

func markWritten(service string) marker {
	return marker{"internal/" + service + "/config.go", "topics", "at the end of the arguments in Topics"}
}

func appOf(service string) string { return "internal/" + service + "/app.go" }

// markHandlers is that of the handlers of a topic, in one of a service's files.
func markHandlers(file, topic string) marker {
	return marker{file, "handlers of contract." + topic, "behind the last inbox.Handle of the topic"}
}

// comment is the marker's line.
func (m marker) comment() string {
	line := "new: " + m.what + " go above this line"
	switch path.Ext(m.file) {
	case ".go":
		return "// " + line
	case ".sql":
		return "-- " + line
	}
	return "# " + line
}

// find is where the marker's line begins; -1: nowhere.
func (m marker) find(text string) int {
	begin := 0
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == m.comment() {
			return begin
		}
		begin += len(line)
	}
	return -1
}
