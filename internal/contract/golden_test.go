package contract_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopkg.in/yaml.v3"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/contract/contracttest"
	"example.com/twinbox/internal/event"
)

func roundTrip(t testing.TB, e event.Event) event.Event {
	t.Helper()
	return contracttest.Event(t, payloadOf(t, e), 1)
}

func payloadOf(t testing.TB, e event.Event) event.Ruled {
	t.Helper()
	at := slices.IndexFunc(contract.All(), func(d event.Declaration) bool { return d.Type == e.Type })
	require.GreaterOrEqual(t, at, 0, e.Type)
	payload, err := contract.All()[at].Payload(e)
	require.NoError(t, err)
	require.Implements(t, (*event.Ruled)(nil), payload)
	return payload.(event.Ruled)
}

func fileOf(d event.Declaration) string { return "events/" + path.Base(d.DataSchema) }

func example(t testing.TB, d event.Declaration) event.Event {
	t.Helper()
	data, err := api.Files.ReadFile("events/examples/" + path.Base(d.DataSchema))
	require.NoError(t, err)
	e := event.Event{Type: d.Type, Source: d.Source, DataSchema: d.DataSchema, Data: data}
	e.Key, _ = payloadOf(t, e).About()
	return e
}

// Examples are added, never changed: new consumers must read old records.
func TestExamplesFitSchemaAndStructBothWays(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, d := range contract.All() {
		t.Run(d.Type, func(t *testing.T) {
			t.Parallel()
			e := example(t, d)
			require.NoError(t, c.Validate(e), "api/events/examples/"+path.Base(d.DataSchema))
			written := roundTrip(t, e)
			require.Equal(t, d.Type, written.Type)
			require.Equal(t, d.DataSchema, written.DataSchema)
			require.JSONEq(t, string(e.Data), string(written.Data), "reading and writing an example changes it")

			var declared struct {
				Properties map[string]any `json:"properties"`
				Required   []string       `json:"required"`
			}
			readJSON(t, fileOf(d), &declared)
			var members map[string]any
			require.NoError(t, json.Unmarshal(written.Data, &members))
			require.Equal(t, sortedKeys(declared.Properties), sortedKeys(members), "struct and schema differ in members")
		})
	}
}

func TestEveryDefinitionHasItsFiles(t *testing.T) {
	t.Parallel()
	var problems []string
	for _, folder := range []string{"api/events", "api/events/examples", "internal/contract/testdata"} {
		declared := map[string]bool{}
		for _, d := range contract.All() {
			name := path.Base(d.DataSchema)
			if declared[name] = true; !slices.Contains(files(t, folder), name) {
				problems = append(problems, fmt.Sprintf("event %s has no file %s/%s", d.Type, folder, name))
			}
		}
		for _, name := range files(t, folder) {
			if !declared[name] {
				problems = append(problems, fmt.Sprintf("%s/%s belongs to no event of contract.All", folder, name))
			}
		}
	}
	require.Empty(t, strings.Join(problems, "\n"),
		"make generate writes missing files of testdata; delete those of a removed event by hand")
}

type asyncDocument struct {
	Channels map[string]struct {
		Address  string         `yaml:"address"`
		Messages map[string]ref `yaml:"messages"`
	} `yaml:"channels"`
	Operations map[string]struct {
		Action  string `yaml:"action"`
		Channel ref    `yaml:"channel"`
	} `yaml:"operations"`
	Components struct {
		Messages map[string]struct {
			Name    string `yaml:"name"`
			Payload struct {
				Schema ref `yaml:"schema"`
			} `yaml:"payload"`
		} `yaml:"messages"`
		Traits map[string]struct {
			Headers struct {
				Required   []string       `yaml:"required"`
				Properties map[string]any `yaml:"properties"`
			} `yaml:"headers"`
		} `yaml:"messageTraits"`
	} `yaml:"components"`
}

type ref struct {
	Ref string `yaml:"$ref"`
}

func asyncAPI(t *testing.T) asyncDocument {
	t.Helper()
	data, err := api.Files.ReadFile("asyncapi.yaml")
	require.NoError(t, err)
	var document asyncDocument
	require.NoError(t, yaml.Unmarshal(data, &document))
	return document
}

func TestAsyncAPIDescribesTheDefinitions(t *testing.T) {
	t.Parallel()
	document := asyncAPI(t)
	want := map[string][]string{}
	for _, d := range contract.All() {
		want[d.Topic] = append(want[d.Topic], d.Type+" ./"+fileOf(d))
	}
	got := map[string][]string{}
	for name, channel := range document.Channels {
		require.Equal(t, name, channel.Address)
		for key, message := range channel.Messages {
			require.Equal(t, "#/components/messages/"+key, message.Ref)
			described, found := document.Components.Messages[key]
			require.True(t, found, key)
			got[channel.Address] = append(got[channel.Address], described.Name+" "+described.Payload.Schema.Ref)
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for topic := range want {
		require.ElementsMatch(t, want[topic], got[topic], topic)
	}
}

func TestAsyncAPIHasOneSenderPerChannel(t *testing.T) {
	t.Parallel()
	document := asyncAPI(t)
	senders := map[string]int{}
	for _, operation := range document.Operations {
		switch operation.Action {
		case "send":
			senders[operation.Channel.Ref]++
		case "receive":
			channel, _ := strings.CutPrefix(operation.Channel.Ref, "#/channels/")
			require.Contains(t, document.Channels, channel, "what is received is sent")
		default:
			require.Fail(t, "unknown action", operation.Action)
		}
	}
	for name := range document.Channels {
		require.Equal(t, 1, senders["#/channels/"+name], name)
	}
}

func TestAsyncAPIDescribesTheHeaders(t *testing.T) {
	t.Parallel()
	trait := asyncAPI(t).Components.Traits["CloudEvent"].Headers
	e := event.Event{
		ID: "id", Source: "/shop", Type: "ordered.v1", DataSchema: "https://example.com/ordered.v1.json",
		Key: "k", Version: 1, Time: time.Now(), Data: []byte("{}"),
	}
	e.Extensions = map[string]string{
		event.HeaderTraceParent: "00", event.HeaderTraceState: "a=b",
		event.HeaderCorrelationID: "c", event.HeaderCausationID: "d",
	}
	headers := e.Message().Metadata
	delete(headers, event.KeyMetadata) // the record key
	headers[event.HeaderID] = e.ID     // the message's UUID until the marshaler writes it, twice
	headers[event.HeaderWatermillID] = e.ID
	require.ElementsMatch(t, slices.Collect(maps.Keys(headers)), slices.Collect(maps.Keys(trait.Properties)))
	for _, name := range trait.Required {
		require.Contains(t, headers, name)
	}
}

func readJSON(t *testing.T, name string, into any) {
	t.Helper()
	data, err := api.Files.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, into))
}

func files(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir("../../" + folder)
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".json" {
			names = append(names, entry.Name())
		}
	}
	return names
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

func load(t testing.TB) *event.Checker {
	t.Helper()
	c, err := contract.Load()
	require.NoError(t, err)
	return c
}
