// Command documents writes docs/configuration.md from the configuration types of the services, api/asyncapi.yaml from
// their events and consumers, and in internal/contract/testdata the first record of a new event. Such a record never
// changes afterwards.
package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/contract/contracttest"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
)

//go:generate env CGO_ENABLED=0 go run . ../../..

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: documents ROOT")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "documents:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	checker, err := contract.Load()
	err = errors.Join(err, checkExamples(checker, contract.All()...))
	if err != nil {
		return err
	}
	document, err := asyncAPI(context.Background())
	if err != nil {
		return err
	}
	problems := []error{
		os.WriteFile(filepath.Join(root, "api/asyncapi.yaml"), document, 0o644),
		os.WriteFile(filepath.Join(root, "docs/configuration.md"), []byte(configuration()), 0o644),
	}
	for _, d := range contract.All() {
		problems = append(problems, keepFirst(filepath.Join(root, "internal/contract/testdata", path.Base(d.DataSchema)), d))
	}
	return errors.Join(problems...)
}

// checkExamples names every example that is missing or breaks the contract: each becomes a record that never changes.
// Without a checker it names missing ones.
func checkExamples(checker *event.Checker, declared ...event.Declaration) error {
	var problems []error
	for _, d := range declared {
		e, err := contracttest.MakeExample(d, 1)
		if err == nil && checker != nil {
			if err = checker.Validate(e); err != nil {
				err = fmt.Errorf("the example of %s: %w", d.Type, err)
			}
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

type topic struct {
	Name, Owner string
	Events      []message
	Readers     []eventing.Consumer
}

type message struct{ event.Declaration }

func (m message) File() string { return path.Base(m.DataSchema) }

// Title is the first sentence of the schema's description.
func (m message) Title() (string, error) {
	data, err := api.Files.ReadFile("events/" + m.File())
	if err != nil {
		return "", err
	}
	var schema struct{ Description string }
	if err := json.Unmarshal(data, &schema); err != nil {
		return "", fmt.Errorf("read schema of %s: %w", m.Type, err)
	}
	sentence, _, _ := strings.Cut(schema.Description, ".")
	return cmp.Or(sentence, m.Name), nil
}

//go:embed asyncapi.yaml.tmpl
var layout string

func asyncAPI(ctx context.Context) ([]byte, error) {
	var all []eventing.Declared
	var problems []error
	for _, s := range services.All() {
		found, err := s.Declare(ctx)
		all, problems = append(all, found), append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	var document struct {
		Topics  []topic
		Sources []string
	}
	for _, s := range all {
		document.Sources = append(document.Sources, s.Source)
	}
	for _, d := range contract.All() {
		at := slices.IndexFunc(document.Topics, func(t topic) bool { return t.Name == d.Topic })
		if at < 0 {
			at = len(document.Topics)
			document.Topics = append(document.Topics, describe(d, all))
		}
		document.Topics[at].Events = append(document.Topics[at].Events, message{d})
	}
	var text bytes.Buffer
	err := template.Must(template.New("asyncapi").Parse(layout)).Execute(&text, document)
	return text.Bytes(), err
}

func describe(d event.Declaration, all []eventing.Declared) topic {
	t := topic{Name: d.Topic, Owner: d.Source}
	for _, s := range all {
		if s.Source == d.Source {
			t.Owner = s.Service
		}
		for _, c := range s.Consumers {
			if c.Topic == d.Topic {
				t.Readers = append(t.Readers, c)
			}
		}
	}
	return t
}

func keepFirst(file string, d event.Declaration) error {
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	e, err := contracttest.MakeExample(d, 1)
	if err != nil {
		return err
	}
	m := e.Message()
	headers := map[string]string{event.HeaderID: e.ID}
	for _, name := range []string{
		event.HeaderSource, event.HeaderType, event.HeaderSpecVersion, event.HeaderTime, event.HeaderSubject,
	} {
		headers[name] = m.Metadata[name]
	}
	record := struct {
		Key     string            `json:"key"`
		Headers map[string]string `json:"headers"`
		Value   json.RawMessage   `json:"value"`
	}{e.Key, headers, e.Data}
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
